"""What images run that are known by name, and Kubernetes' test image agnhost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from kemu.emulated.kubelet.programs.shells import FOREVER, Shell, Steps
from kemu.emulated.kubelet.programs.syntax import NotUnderstood
from kemu.emulated.objects import times

SHELLS = frozenset((
    "busybox", "alpine", "ubuntu", "debian", "fedora", "centos", "amazonlinux", "bash",
))  # fmt: skip
"""Images that run a shell, which ends at once without standard input. Their args without a command are the command."""
SERVERS = frozenset((
    "pause", "nginx", "httpd", "redis", "memcached", "postgres", "mysql", "mariadb", "mongo", "rabbitmq", "etcd",
    "registry", "haproxy", "traefik", "caddy", "envoy", "coredns", "nautilus", "kitten", "echoserver", "hello-app",
    "sample-device-plugin",
))  # fmt: skip
"""Images that run until they are stopped."""
SERVER_COMMANDS = frozenset((
    "pause", "nginx", "httpd", "httpd-foreground", "apache2-foreground", "redis-server", "memcached", "postgres",
    "mysqld", "mongod", "etcd", "haproxy", "caddy", "envoy", "coredns",
))  # fmt: skip
AGNHOST = "agnhost"
WEB_ROOTS = {"nginx": "/usr/share/nginx/html", "httpd": "/usr/local/apache2/htdocs"}
"""Where the pages of web servers are."""
PAGES = {
    "nginx": (
        "<!DOCTYPE html>\n<html>\n<head>\n<title>Welcome to nginx!</title>\n</head>\n"
        "<body>\n<h1>Welcome to nginx!</h1>\n</body>\n</html>\n"
    ),
    "httpd": "<html><body><h1>It works!</h1></body></html>\n",
}

_AGNHOST_SERVERS = frozenset((
    "audit-proxy", "crd-conversion-webhook", "fake-gitserver", "fake-registry-server", "grpc-health-checking",
    "guestbook", "liveness", "netexec", "nettest", "no-snat-test", "no-snat-test-proxy", "pause",
    "port-forward-tester", "porter", "resource-consumer-controller", "serve-hostname", "tcp-reset", "test-webserver",
    "webhook", "mtlsserver", "podcertificatesigner", "test-service-account-issuer-discovery", "inclusterclient",
    "external-metrics",
))  # fmt: skip
_METHODS = ("POST", "GET", "PUT")
_NAMESPACES = ("kube-system", "default", "ns")


def name_of(image: str) -> str:
    """The last part of its name, without tag and digest."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def server(shell: Shell, words: Sequence[str]) -> Steps:
    if words[0].endswith("nginx") and words[1:2] == ["-s"]:
        return 0  # a signal to the one that runs
    yield FOREVER
    return 0


def agnhost(shell: Shell, words: Sequence[str]) -> Steps:
    rest = list(words[1:]) or ["pause"]
    name = rest[0]
    if name == "pause":
        shell.say("Paused\n")
        yield FOREVER
    if name == "entrypoint-tester":
        shell.say(f"[{' '.join(['/agnhost', *rest])}]\n")
        return 0
    if name == "etc-hosts":
        shell.say(shell.world.files.read("/etc/hosts"))
        return 0
    if name == "logs-generator":
        return (yield from _logs_generator(shell, rest[1:]))
    if name in _AGNHOST_SERVERS:
        yield FOREVER
    raise NotUnderstood(f"what agnhost does as {name!r} is not known")


def _logs_generator(shell: Shell, words: Sequence[str]) -> Steps:
    count = _option(words, "--log-lines-total", "-t")
    duration = _option(words, "--run-duration", "-d")
    if not count.isdigit() or len(count) > 6 or not int(count):
        raise NotUnderstood("agnhost logs-generator without --log-lines-total")
    total_s = times.parse_duration(duration or "0s") / 1e9
    pause_s = total_s / int(count)
    for number in range(int(count)):
        choose = shell.world.random
        now_s = shell.world.unix_s + shell.at_s
        stamp = datetime.fromtimestamp(now_s, UTC).strftime("%m%d %H:%M:%S") + f".{int(now_s % 1 * 1e6):06d}"
        pod = "".join(choose.choice("bcdfghjklmnpqrstvwxz2456789") for _ in range(choose.randrange(3, 5)))
        url = f"/api/v1/namespaces/{choose.choice(_NAMESPACES)}/pods/{pod}"
        shell.say(
            f"I{stamp}       1 logs_generator.go:76] "
            f"{number} {choose.choice(_METHODS)} {url} {choose.randrange(200, 600)}\n"
        )
        yield pause_s
        shell.at_s += pause_s
    return 0


def _option(words: Sequence[str], *names: str) -> str:
    for number, word in enumerate(words):
        name, sign, value = word.partition("=")
        if name in names:
            return value if sign else words[number + 1] if number + 1 < len(words) else ""
        if not word.startswith("--") and (found := re.match(r"(-[td])(\S+)$", word)) and found[1] in names:
            return found[2]
    return ""
