/** What `Allow` says of an address, and how it refuses other methods. */
import type { RequestHandler } from 'express'
import { methodNotSupported } from '../errors.ts'

/** The methods of an address as `Allow` has them: HEAD goes with GET (RFC 9110, section 9.3.2). */
export const allowOf = (methods: readonly string[]): string =>
  methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')

/** Refuses what is none of these methods with METHOD_NOT_SUPPORTED. */
export function notAllowed(methods: readonly string[]): RequestHandler {
  const allow = allowOf(methods)
  return (req, res) => {
    res.set('Allow', allow)
    throw methodNotSupported(req.method, allow)
  }
}
