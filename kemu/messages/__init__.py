"""Generated code: protocol buffers of Kubernetes, of kemu and of etcd."""
