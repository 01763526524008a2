/** How long a request waits for the database, and what it holds meanwhile. */
import type { ServerResponse } from 'node:http'
import { Deadline, OverloadedError } from '../../db/index.ts'
import { CLIENT_GONE, problem } from '../errors/problem.ts'
import { connectionOf } from '../http/connection.ts'
import { headSize } from '../http/memory.ts'

/**
 * Bytes of a usual request, which does not count, so that large ones refuse no usual one: the queue of the database
 * bounds how many wait.
 */
const USUAL = 4_096

/**
 * Returns a deadline in so many milliseconds, or when the connection closes: the client has left, or sent what was
 * refused. A deadline that is over, as after the answer, is not given up any more. What a large request holds, its
 * head and so many bytes of a body, counts until `endWait`, or until its answer is over, or what is left of that to send
 * is held. Throws SERVICE_UNAVAILABLE if all that wait would hold too much.
 */
export function startWait(res: ServerResponse, timeout: number, ofBody: number): Deadline {
  const { req } = res
  const bytes = headSize(req) + ofBody
  if (bytes > USUAL && !connectionOf(req.socket).countRequest(bytes)) {
    throw problem('unavailable', TOO_LARGE)
  }
  const deadline = new Deadline(timeout)
  res.on('close', () => deadline.giveUp(CLIENT_GONE))
  return deadline
}

const TOO_LARGE = new OverloadedError('Requests that wait for the database hold too much memory')

/** Ends the count of what a request holds, which goes on to read its body: readBody counts that. */
export function endWait({ req }: ServerResponse): void {
  connectionOf(req.socket).countRequest(0)
}
