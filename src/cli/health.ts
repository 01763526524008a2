/**
 * The health check of the image: ends with code 0 if the process of its container answers. It reads two variables
 * itself, because the whole configuration takes four times the CPU, every ten seconds.
 */
import { loadVariables } from '../config/environment.ts'
import { isOk } from './probe.ts'

const [environment, dotenv] = loadVariables()
const { LISTEN_HOST, PORT } = { ...dotenv, ...environment }
const port = PORT || '3000'

// For port 0 the system chooses one, which only the process knows.
const isHealthy = port === '0' || (await isOk(LISTEN_HOST || '*', port, '/healthz'))
process.exit(isHealthy ? 0 : 1)
