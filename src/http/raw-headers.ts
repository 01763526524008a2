/** Headers as they were sent: Node keeps the first of several that there should be only one of. */
import type { IncomingMessage } from 'node:http'

/** How often a request has a header; `name` is in lower case. */
export function countHeader({ rawHeaders }: IncomingMessage, name: string): number {
  let count = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const sent = rawHeaders[index] as string // an even index below the length
    if (sent.length === name.length && sent.toLowerCase() === name) count++
  }
  return count
}
