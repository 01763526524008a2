/** What requests hold while they wait for the database. */
import type { IncomingMessage } from 'node:http'
import { OverloadedError } from '../../db/index.ts'
import { problem } from '../errors/problem.ts'
import { connectionOf } from '../http/connection.ts'
import { headSize } from '../http/request.ts'

/**
 * Counts what a request holds, its head and so many bytes of a body, until it is answered or is counted again. Throws
 * SERVICE_UNAVAILABLE if all that wait would hold too much.
 */
export function holdRequest(req: IncomingMessage, ofBody: number): void {
  const isHeld = connectionOf(req.socket).countRequest(headSize(req) + ofBody)
  if (!isHeld) throw problem('unavailable', TOO_LARGE)
}

const TOO_LARGE = new OverloadedError('Requests that wait for the database hold too much memory')
