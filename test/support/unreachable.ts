/** A service whose database becomes unavailable after the start. */
import { writeFileSync } from 'node:fs'
import { engine, newDatabase } from './database.ts'
import { storePets } from './pets.ts'
import { startProxy } from './proxy.ts'
import { type Service, startService } from './service.ts'

/** Starts the service and makes its database unavailable: every statement fails without delay. */
export async function startUnreachable(): Promise<Service> {
  return engine === 'mysql' ? await startCutOff() : await startBroken()
}

async function startCutOff(): Promise<Service> {
  const database = await newDatabase()
  const url = new URL(database.url)
  const proxy = await startProxy(url.hostname, Number(url.port || 3306))
  url.port = String(proxy.port)
  const service = await startService({}, { database: { ...database, url: url.href } })
  await proxy.cut()
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
