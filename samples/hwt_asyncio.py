#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""An echo server that closes connections after a silence: asyncio, with a timer of hwt for each connection.

Traffic pushes a timer back, which is a store: the timers are in the process, and need no device.
"""
import argparse
import asyncio
import signal

import hwt.aio


class Server:
    """The server's timers, and how its connections have ended."""

    def __init__(self, timers: hwt.aio.HwtTimers, idle: float) -> None:
        self.timers = timers
        self.idle = idle            # seconds
        self.silent = self.gone = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Echo what a client sends, until it closes or is silent."""
        try:
            async with self.timers.timeout(self.idle) as timer:
                while data := await reader.read(4096):
                    timer.reschedule(self.idle)
                    writer.write(data)
                    await writer.drain()
                self.gone += 1
        except TimeoutError:
            self.silent += 1
        except ConnectionError:
            self.gone += 1
        finally:
            writer.close()


async def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description="Echo, and close connections after a silence.")
    parser.add_argument("--port", type=int, default=7777, help="0: any (default 7777)")
    parser.add_argument("--idle", type=float, default=10, help="seconds (default 10)")
    args = parser.parse_args()

    end = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    with hwt.aio.HwtTimers() as timers:
        server = Server(timers, args.idle)
        listener = await asyncio.start_server(server.serve, "127.0.0.1", args.port)
        print("port", listener.sockets[0].getsockname()[1], flush=True)
        async with listener:
            await end.wait()
    print(f"{server.silent} connections were silent, {server.gone} were closed by their clients")


if __name__ == "__main__":
    asyncio.run(main())
