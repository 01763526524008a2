/** `npm ci` beside a running service, as in an upgrade: for a minute none of its packages is there. */
import { rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { engine, newFolder } from '../support/database.ts'
import { startInstance, until } from '../support/instance.ts'
import { withHooks } from '../support/watched.ts'

test('the service serves what it had not served before, also while its packages are away', async () => {
  const file = path.join(newFolder(), 'away')
  const { fetch, rest, trpc, sql, stop, idle } = await startInstance(
    withHooks(
      `if (existsSync(${JSON.stringify(file)}) && !/^node:/.test(specifier)) {
         throw Object.assign(new Error('Cannot find ' + specifier), { code: 'ERR_MODULE_NOT_FOUND' })
       }
       return next(specifier, context)`,
      "import { existsSync } from 'node:fs'",
    ),
  )
  onTestFinished(async () => void (await stop()))
  const statuses = async () => {
    const asked = ['/v1/openapi.json', '/docs/', '/docs/docs.js', '/readyz', '/v1/nothing'].map(
      async (path) => (await fetch(path)).status,
    )
    const headers = { 'idempotency-key': `"${crypto.randomUUID()}"` }
    const body = { name: 'Rex', categoryId: 3 }
    asked.push(rest('POST', '/pets', { headers, body }).then(({ status }) => status))
    asked.push(rest('POST', '/pets', { body: { name: '' } }).then(({ status }) => status))
    expect(await trpc.listPets.query({})).toEqual(expect.any(Array))
    return await Promise.all(asked)
  }
  const right = [200, 200, 200, 200, 404, 201, 400]
  writeFileSync(file, '')
  expect(await statuses()).toEqual(right)
  if (engine === 'mysql') {
    // A new connection, too.
    await idle()
    const own = await sql(
      'select id from information_schema.processlist where db = database() and id <> connection_id()',
    )
    for (const { id } of own) await sql(`kill ${id}`)
    await until('another connection works', async () => (await fetch('/readyz')).status === 200)
  }
  rmSync(file)
  expect(await statuses()).toEqual(right)
})
