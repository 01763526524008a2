/** The address of who asks. */
import { isIP } from 'node:net'
import type { Request } from 'express'

/**
 * The client's address, as far as TRUST_PROXY says whom to believe. What a proxy calls an address and
 * is none counts for nothing: then it is that of the connection. Undefined when that is gone.
 */
export const addressOf = ({ ip = '', socket }: Request): string | undefined =>
  isIP(ip) ? ip : socket.remoteAddress
