/** A service whose database becomes unavailable after the start. */
import { writeFileSync } from 'node:fs'
import { engine } from './database.ts'
import { storePets } from './pets.ts'
import { newProxiedDatabase } from './proxy.ts'
import { type Service, type Surroundings, startService } from './service.ts'

/** Starts the service and makes its database unavailable: every statement fails without delay. */
export async function startUnreachable(surroundings: Surroundings = {}): Promise<Service> {
  return engine === 'mysql' ? await startCutOff(surroundings) : await startBroken(surroundings)
}

async function startCutOff(surroundings: Surroundings): Promise<Service> {
  const database = await newProxiedDatabase()
  const service = await startService({}, { ...surroundings, database })
  await database.proxy.cut()
  return service
}

async function startBroken(surroundings: Surroundings): Promise<Service> {
  const service = await startService({}, surroundings)
  const path = service.databaseUrl.slice('sqlite:'.length)
  // The service drops its cached pages of the file after another connection has changed it.
  await service.sql('pragma wal_checkpoint(truncate)')
  await storePets(service.sql, [{ name: 'Rex', categoryId: 1n, status: 'sold' }])
  writeFileSync(path, 'This is no database.'.repeat(5_000))
  return service
}
