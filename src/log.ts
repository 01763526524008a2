/** The log: on stderr, readable in a terminal, otherwise a line of JSON for each entry. */
import { type Logger, pino } from 'pino'
import pretty from 'pino-pretty'

const STDERR = 2

export function createLog(): Logger {
  if (!process.stderr.isTTY) return pino(pino.destination({ dest: STDERR, sync: true }))
  const ignore = 'pid,hostname'
  return pino(pretty({ destination: STDERR, sync: true, singleLine: true, ignore }))
}
