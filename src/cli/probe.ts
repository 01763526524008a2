/** What health.ts and ready.ts ask a process of this machine. */
import { Agent, get } from 'node:http'

/** A process that listens on all addresses, or on the localhost of its system, listens on one of two. */
const hostsOf = (listenHost: string) =>
  ['*', '0.0.0.0', '::', 'localhost'].includes(listenHost) ? ['127.0.0.1', '::1'] : [listenHost]

/** Returns whether the process on this host, as LISTEN_HOST has it, and port answers a path with 200 within 2 seconds. */
export async function isOk(listenHost: string, port: string, path: string): Promise<boolean> {
  // `fetch` would refuse ports such as 6000. An agent of its own uses no proxy (NODE_USE_ENV_PROXY).
  const ask = (host: string) =>
    new Promise<boolean>((resolve) => {
      const signal = AbortSignal.timeout(2_000)
      get({ host, port, path, agent: new Agent(), signal }, (res) => {
        res.destroy()
        resolve(res.statusCode === 200)
      }).on('error', () => resolve(false))
    }).catch(() => false) // `get` throws for a port that is none, which the service refuses
  return (await Promise.all(hostsOf(listenHost).map(ask))).includes(true)
}
