"""The programs that envtest of controller-runtime starts, with kemu behind them.

__main__ begins one of them
assets   writes them into a folder: small scripts, each of which begins here (``python -m kemu.lab.up.envtest NAME``)
etcd     answers for an etcd that nobody asks for anything
flags    what kube-apiserver is told on its command line
servers  an API server alone: nothing schedules, controls or runs pods, as with a bare kube-apiserver
"""
