/** Output to a terminal that nobody reads, as after Ctrl-S or behind a connection that hangs. */

/**
 * Lets no write to a terminal block the process: Node sets terminals to blocking writes
 * (https://nodejs.org/api/process.html#a-note-on-process-io), and a blocked process takes no request and no
 * signal. What a terminal does not take then waits in the stream.
 */
export function unblockTerminals(): void {
  for (const stream of [process.stdout, process.stderr]) {
    // Node does not document the handle, but has no other way; the package set-blocking takes it, too.
    const { _handle: handle } = stream as { _handle?: { setBlocking?(isBlocking: boolean): void } }
    if (stream.isTTY) handle?.setBlocking?.(false)
  }
}
