/**
 * Waits until the process of a unit of systemd is ready: until its METRICS_PORT says so, because another process may
 * answer on its PORT, or until its PORT does where it has no metrics. Ends with code 1 if the process, MAINPID, ends.
 */
import { setTimeout } from 'node:timers/promises'
import { loadVariables } from '../config/environment.ts'

const [environment, dotenv] = loadVariables()
const { METRICS_PORT, METRICS_HOST, PORT, LISTEN_HOST, MAINPID } = { ...dotenv, ...environment }
const [port, host] = METRICS_PORT ? [METRICS_PORT, METRICS_HOST] : [PORT || 3000, LISTEN_HOST]
const name = !host || ['*', '::', '0.0.0.0'].includes(host) ? 'localhost' : host
const url = `http://${name.includes(':') ? `[${name}]` : name}:${port}/readyz`

const isReady = () =>
  fetch(url, { signal: AbortSignal.timeout(2_000) }).then(
    ({ ok }) => ok,
    () => false, // also where the service refuses a variable
  )
const isAlive = () => {
  try {
    return process.kill(Number(MAINPID), 0)
  } catch {
    return false
  }
}
while (!(await isReady())) {
  if (!isAlive()) process.exit(1)
  await setTimeout(100)
}
