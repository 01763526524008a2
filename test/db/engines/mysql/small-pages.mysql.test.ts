/** A MySQL server with pages of 4 KiB, whose indexes take at most 768 bytes of a row. */
import { expect, test } from 'vitest'
import { mysqlForFile, newDatabase } from '../../../support/database.ts'
import { programs, runToEnd } from '../../../support/process.ts'
import { startService } from '../../../support/service.ts'
import { openSql } from '../../../support/sql.ts'

const mysql = await mysqlForFile(['--innodb-page-size=4k'])

test('the service migrates it, and keeps a pet with the longest name', async () => {
  const database = await newDatabase(mysql.url)
  const migrated = await runToEnd(programs.migrate, { DATABASE_URL: database.url })
  expect(migrated).toMatchObject({ code: 0, stderr: '' })
  // MariaDB would take longer ones.
  const sql = await openSql(database.url)
  const indexes = await sql(
    `select index_name, sum(coalesce(character_octet_length, 8)) as bytes
     from information_schema.statistics join information_schema.columns
       using (table_schema, table_name, column_name)
     where table_schema = database() group by table_name, index_name`,
  )
  expect(indexes.length).toBeGreaterThan(5)
  expect(indexes.filter(({ bytes }) => Number(bytes) > 768)).toEqual([])
  await sql.close()
  const service = await startService({}, { database })
  const body = JSON.stringify({ name: '\u{1F415}'.repeat(255), categoryId: 1 })
  const headers = { 'idempotency-key': '"small-pages"' }
  const created = await service.fetch('/v1/pets', { method: 'POST', headers, body })
  expect(created.status).toBe(201)
  expect(await (await service.fetch('/v1/pets')).json()).toEqual([await created.json()])
  await service.stop()
})
