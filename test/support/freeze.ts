/** A process that hangs. */
import { execFileSync } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { until } from './instance.ts'

/** Stops a process, and waits until all its threads have stopped: a signal takes effect later. */
export async function freeze(pid: number): Promise<void> {
  process.kill(pid, 'SIGSTOP')
  while (!states(pid).every((state) => state === 'T')) await new Promise(setImmediate)
}

/** Continues the process. */
export function thaw(pid: number): void {
  process.kill(pid, 'SIGCONT')
}

/** Makes calls by `fetch` to a process that hangs until all of them have arrived. Returns their answers. */
export async function sendTogether<Answer>(
  pid: number,
  calls: (() => Promise<Answer>)[],
): Promise<Promise<Answer>[]> {
  let sent = 0
  const count = () => void sent++
  // https://undici.nodejs.org/#/docs/api/DiagnosticsChannel
  subscribe('undici:request:bodySent', count)
  await freeze(pid)
  try {
    const answers = calls.map((call) => call())
    await until('all are sent', () => sent >= calls.length)
    return answers
  } finally {
    thaw(pid)
    unsubscribe('undici:request:bodySent', count)
  }
}

/** The states of the threads of a process, in the letters of `ps`. */
function states(pid: number): string[] {
  const folder = `/proc/${pid}/task`
  if (!existsSync(folder)) {
    return [execFileSync('ps', ['-o', 'state=', '-p', String(pid)], { encoding: 'utf8' }).charAt(0)]
  }
  // The state follows the name, which is in parentheses and may contain parentheses.
  return readdirSync(folder).map((thread) => {
    const text = readFileSync(`${folder}/${thread}/stat`, 'utf8')
    return text.charAt(text.lastIndexOf(')') + 2)
  })
}
