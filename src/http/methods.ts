/** Refuses methods that an address does not have. */
import { TRPCError } from '@trpc/server'
import type { RequestHandler } from 'express'

/** Refuses with METHOD_NOT_SUPPORTED, and names those that there are in `Allow`; HEAD goes with GET. */
export function notAllowed(methods: readonly string[]): RequestHandler {
  const allow = methods
    .flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    .join(', ')
  return (req, res) => {
    res.set('Allow', allow)
    const message = `${req.method} is not supported here: use ${allow.replace(/, (?=[^,]*$)/, ' or ')}`
    throw new TRPCError({ code: 'METHOD_NOT_SUPPORTED', message })
  }
}
