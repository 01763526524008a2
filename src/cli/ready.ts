/**
 * For units of releases up to 2.0; the later ones have Type=notify. Waits until the process of a unit is ready: until
 * its METRICS_PORT says so, because another process may answer on its PORT, or until its PORT does where it has no
 * metrics. Ends with code 1 if the process, MAINPID, ends.
 */
import { setTimeout } from 'node:timers/promises'
import { loadVariables } from '../config/environment.ts'
import { isOk } from './probe.ts'

const [environment, dotenv] = loadVariables()
const { METRICS_PORT, METRICS_HOST, PORT, LISTEN_HOST, MAINPID } = { ...dotenv, ...environment }
const [port, host] = METRICS_PORT
  ? [METRICS_PORT, METRICS_HOST || '127.0.0.1']
  : [PORT || '3000', LISTEN_HOST || '*']

const isAlive = () => {
  try {
    return process.kill(Number(MAINPID), 0)
  } catch {
    return false
  }
}
while (!(await isOk(host, port, '/readyz'))) {
  if (!isAlive()) process.exit(1)
  await setTimeout(100)
}
// Another program may have answered.
if (!isAlive()) process.exit(1)
