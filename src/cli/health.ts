/**
 * The health check of the image: ends with code 0 if the process of its container answers. It reads two variables
 * itself, because the whole configuration takes four times the CPU, every ten seconds.
 */
import { Agent, get } from 'node:http'
import { loadVariables } from '../config/environment.ts'

const [environment, dotenv] = loadVariables()
const variables = { ...dotenv, ...environment }
const port = variables.PORT || '3000'
const host = variables.LISTEN_HOST || '*'

// A process that listens on all addresses, or on the localhost of its system, listens on one of these.
const hosts = ['*', '0.0.0.0', '::', 'localhost'].includes(host) ? ['127.0.0.1', '::1'] : [host]

const isHealthy = (host: string) =>
  new Promise<boolean>((resolve) => {
    // An agent of its own uses no proxy (NODE_USE_ENV_PROXY).
    get({ host, port, path: '/healthz', agent: new Agent() }, ({ statusCode }) =>
      resolve(statusCode === 200),
    ).on('error', () => resolve(false))
  })
const answers = await Promise.all(hosts.map(isHealthy))
// For port 0 the system chooses one, which only the process knows.
process.exit(port === '0' || answers.includes(true) ? 0 : 1)
