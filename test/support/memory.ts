/** What this process, in which the service of a test runs, has in use. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Service } from './service.ts'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

/** Bytes in use, without what the tests themselves keep of each request. */
export function usedMemory(service: Service): number {
  service.logged.length = 0
  collectGarbage()
  return process.memoryUsage().heapUsed
}
