/** A terminal whose output nobody reads until `read`. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { TestContext } from 'vitest'

// Node cannot open a terminal.
const program = `
import os, pty, sys, time, tty
reader, terminal = pty.openpty()
tty.setraw(terminal)
if sys.argv[1:] == ['full']:
  os.set_blocking(terminal, False)
  for size in [1000] + 50 * [1]:
    try:
      while True: os.write(terminal, b'x' * size)
    except BlockingIOError: time.sleep(0.01) # the kernel moves some of it on
print(os.ttyname(terminal), flush=True)
sys.stdin.readline()
while True: sys.stdout.buffer.write(os.read(reader, 65536)); sys.stdout.buffer.flush()
`

export type Terminal = Awaited<ReturnType<typeof openTerminal>>

/** Opens a terminal, which ends with the test. A `full` one takes nothing until it is read. */
export async function openTerminal(
  { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
  ...fill: 'full'[]
) {
  const owner = spawn('python3', ['-c', program, ...fill], { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(() => void owner.kill('SIGKILL'))
  const chunks: string[] = []
  owner.stdout.setEncoding('utf8').on('data', (text) => chunks.push(text))
  while (!chunks.join('').includes('\n')) await once(owner.stdout, 'data')
  const [path = '', ...rest] = chunks.splice(0).join('').split('\n')
  chunks.push(rest.join('\n'))
  return {
    /** A `starter` of a program whose streams with these numbers are the terminal. */
    starter: (...streams: (1 | 2)[]) => [
      ...['sh', '-c'],
      `exec "$@" ${streams.map((stream) => `${stream}>${path}`).join(' ')}`,
      'sh',
    ],
    /** Begins to read. */
    read: () => void owner.stdin.write('\n'),
    /** What has been read so far. */
    get shown() {
      return chunks.join('')
    },
    /** The end of it, for looks at megabytes while they are read. */
    get latest() {
      return chunks.slice(-2).join('')
    },
  }
}
