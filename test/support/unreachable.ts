/** A service whose database becomes unavailable after the start. */
import { writeFileSync } from 'node:fs'
import { engine } from './database.ts'
import { storePets } from './pets.ts'
import { newProxiedDatabase } from './proxy.ts'
import { type Service, startService } from './service.ts'

/** Starts the service and makes its database unavailable: every statement fails without delay. */
export async function startUnreachable(): Promise<Service> {
  return engine === 'mysql' ? await startCutOff() : await startBroken()
}

async function startCutOff(): Promise<Service> {
  const database = await newProxiedDatabase()
  const service = await startService({}, { database })
  await database.proxy.cut()
  return service
}

async function startBroken(): Promise<Service> {
  const service = await startService()
  const path = service.databaseUrl.slice('sqlite:'.length)
  // The service drops its cached pages of the file after another connection has changed it.
  await service.sql('pragma wal_checkpoint(truncate)')
  await storePets(service.sql, [{ name: 'Rex', categoryId: 1n, status: 'sold' }])
  writeFileSync(path, 'This is no database.'.repeat(5_000))
  return service
}
