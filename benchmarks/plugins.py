"""Plugin programs for the benchmarks: `python plugins.py allow|sleep|echo SOCKET`."""

import sys
import time
from concurrent import futures


def _echo(path: str) -> None:
    """A bare grpcio server that returns what it gets: the yardstick."""
    import grpc

    class Echo(grpc.GenericRpcHandler):
        def service(self, _):
            return grpc.unary_unary_rpc_method_handler(lambda request, _: request)

    limit = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.server(futures.ThreadPoolExecutor(16), options=limit)
    server.add_generic_rpc_handlers((Echo(),))
    server.add_insecure_port(f"unix:{path}")
    server.start()
    print("ready", flush=True)
    server.wait_for_termination()


def _serve(seconds: float) -> None:
    from agent_hooks.plugin import ALLOW, serve

    class Allow:
        def intercept(self, context):
            if seconds:
                time.sleep(seconds)
            return ALLOW

    serve(Allow())


if __name__ == "__main__":
    match sys.argv[1]:
        case "echo":
            _echo(sys.argv[2])
        case "sleep":
            _serve(0.05)
        case _:
            _serve(0)
