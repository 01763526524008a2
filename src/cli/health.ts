/**
 * The health check of the image: ends with code 0 if the process of its container answers. It reads two variables
 * itself, because the whole configuration takes four times the CPU, every ten seconds.
 */
import { Agent, get } from 'node:http'
import { loadVariables } from '../config/environment.ts'

const [environment, dotenv] = loadVariables()
const { LISTEN_HOST, PORT } = { ...dotenv, ...environment }
const port = PORT || '3000'

/** A process that listens on all addresses, or on the localhost of its system, listens on one of two. */
const hostsOf = (listenHost: string) =>
  ['*', '0.0.0.0', '::', 'localhost'].includes(listenHost) ? ['127.0.0.1', '::1'] : [listenHost]

/** Resolves to whether the process at this address answers with 200 within 2 seconds. */
const isAlive = (host: string) =>
  new Promise<boolean>((resolve) => {
    const signal = AbortSignal.timeout(2_000)
    // `fetch` would refuse ports such as 6000. An agent of its own uses no proxy (NODE_USE_ENV_PROXY).
    get({ host, port, path: '/healthz', agent: new Agent(), signal }, (res) => {
      res.destroy()
      resolve(res.statusCode === 200)
    }).on('error', () => resolve(false))
  }).catch(() => false) // `get` throws for a port that is none, which the service refuses

// For port 0 the system chooses one, which only the process knows.
const isHealthy =
  port === '0' || (await Promise.all(hostsOf(LISTEN_HOST || '*').map(isAlive))).includes(true)
process.exit(isHealthy ? 0 : 1)
