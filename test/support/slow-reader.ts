/** A client with a small receive buffer that reads nothing of a response until `read`. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'

// Node cannot set small segments and a small buffer. Without them the kernel buffers megabytes.
const program = `
import socket, sys
reader = socket.socket()
reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
reader.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
reader.connect(('127.0.0.1', int(sys.argv[1])))
reader.sendall(sys.argv[2].encode())
reader.recv(1, socket.MSG_PEEK)
print('answered', flush=True)
sys.stdin.readline()
while part := reader.recv(65536):
  sys.stdout.buffer.write(part)
`

/**
 * Sends a request, and waits for the first byte of the response. The client ends with its test:
 * a concurrent test gives its own `finished`.
 */
export async function readSlowly(port: number, request: string, finished = onTestFinished) {
  const reader = spawn('python3', ['-c', program, String(port), request], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  finished(() => void reader.kill())
  const chunks: Buffer[] = []
  reader.stdout.on('data', (chunk) => chunks.push(chunk))
  await once(reader.stdout, 'data')
  return {
    /** Reads the whole response, and returns its text. */
    async read() {
      reader.stdin.write('\n')
      await once(reader, 'close')
      return Buffer.concat(chunks).toString().replace('answered\n', '')
    },
    /** Ends without reading: the kernel resets the connection. */
    leave: () => void reader.kill('SIGKILL'),
  }
}
