/** What the service tells its supervisor. */
import { execFile } from 'node:child_process'
import type { Log } from '../observe/log.ts'

/**
 * Tells systemd that the service is ready, by systemd's own program, because Node has no UNIX datagram sockets. That
 * program sends the message as a process of its own, so the unit needs `NotifyAccess=all`:
 * https://www.freedesktop.org/software/systemd/man/252/systemd-notify.html
 */
export function notifyReady(log: Log): void {
  execFile('systemd-notify', ['--ready'], (error) => {
    if (error) log.warn({ err: error }, 'systemd does not know that the service is ready')
  })
}
