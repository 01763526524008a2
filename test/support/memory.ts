/** The memory of this process, which includes the service of a test. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Service } from './service.ts'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

/** The bytes in use, without the data that the tests keep for each request. */
export function usedMemory(service: Service): number {
  service.logged.length = 0
  collectGarbage()
  return process.memoryUsage().heapUsed
}
