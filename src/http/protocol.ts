/** Which protocol a client speaks that does not send HTTP/1.1, for the log. */

/** How its first bytes begin. */
const beginnings = [
  ['TLS', '\x16\x03'], // RFC 8446, section 5.1: the record of a handshake
  ['HTTP/2', 'PRI * HTTP/2'], // RFC 9113, section 3.4
  ['PROXY', 'PROXY '], // proxy-protocol.txt of HAProxy, section 2.1
  ['PROXY', '\r\n\r\n\0\r\nQUIT\n'], // the same, section 2.2
] as const

/** Returns the protocol of bytes that are not HTTP/1.1; undefined where it is not known. */
export function protocolOf(bytes: Buffer | undefined): string | undefined {
  const text = bytes?.toString('latin1', 0, 12) ?? ''
  return beginnings.find(([, beginning]) => text.startsWith(beginning))?.[0]
}
