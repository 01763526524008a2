/** How a process reads its environment and the file `.env`. */
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { engine } from '../support/database.ts'
import { newFolder, programs, runServer, runToEnd, type ServerProgram } from '../support/process.ts'
import { keyedFetch } from '../support/rest.ts'

// The variables do not depend on the engine.
const testOnce = test.runIf(engine === 'sqlite')

async function start(dotenv: string, variables: Record<string, string>): Promise<ServerProgram> {
  const { folder, remove } = newFolder()
  onTestFinished(remove)
  writeFileSync(path.join(folder, '.env'), dotenv)
  const server = await runServer(variables, folder)
  onTestFinished(async () => void (await server.end()))
  return server
}

testOnce(
  'every variable takes effect, and the environment takes precedence over .env',
  async () => {
    const dotenv = [
      'BASE_URL=https://pets.example/v1',
      'STAGING_URL=https://try.pets.example/v1',
      'CORS_ORIGINS=https://shop.example, https://admin.shop.example',
      'RATE_LIMIT=999',
      'TRUST_PROXY=1',
      'DATABASE_URL=sqlite:shop/pets.db?create',
    ].join('\n')
    const server = await start(dotenv, { RATE_LIMIT: '3', CORS_ORIGINS: '' })
    expect(server.stdout).toContain('SQLite, embedded: shop/pets.db')
    const key = String(server.stdout.match(/petstore_[\w-]{43}/)?.[0])
    const document = await (await fetch(`${server.origin}/v1/openapi.json`)).json()
    expect(document).toMatchObject({
      servers: [{ url: 'https://pets.example/v1' }, { url: 'https://try.pets.example/v1' }],
    })
    const pet = { method: 'POST', body: '{"name":"Rex","categoryId":1}' }
    const made = await keyedFetch(server.origin, key)('/v1/pets', pet)
    expect(made.headers.get('location')).toBe('https://pets.example/v1/pets/1')
    expect(made.headers.get('ratelimit-policy')).toMatch(/q=3\b/)

    const from = async (address: string) => {
      const headers = { 'x-forwarded-for': address }
      return (await fetch(`${server.origin}/v1/pets`, { headers })).status
    }
    const statuses: number[] = []
    for (let call = 0; call < 4; call++) statuses.push(await from('192.0.2.1'))
    expect(statuses).toEqual([401, 401, 401, 429])
    expect(await from('192.0.2.2')).toBe(401)

    // Empty in the environment, so unset, although .env has a value.
    const origin = 'https://shop.example'
    const page = await fetch(`${server.origin}/v1/pets`, { headers: { origin } })
    expect(page.headers.get('access-control-allow-origin')).toBeNull()
  },
)

testOnce('variables can be in .env alone, and an empty one counts as unset', async () => {
  const server = await start(
    'CORS_ORIGINS=https://shop.example\nRATE_LIMIT=\nSHUTDOWN_DELAY=\n',
    {},
  )
  const answer = await fetch(`${server.origin}/v1/pets`, {
    headers: { origin: 'https://shop.example' },
  })
  expect(answer.headers.get('access-control-allow-origin')).toBe('https://shop.example')
  expect(answer.headers.get('ratelimit')).toBeNull()
  expect(server.stdout).toContain('SQLite, embedded: data/petstore.db')
  // The default keep-alive timeout.
  expect(answer.headers.get('keep-alive')).toBe('timeout=65')
})

testOnce(
  'LISTEN_HOST is the only address that the service listens on; warnings are log lines',
  async () => {
    const server = await start('', { LISTEN_HOST: '127.0.0.2', RATELIMIT: '3' })
    const { port } = new URL(server.origin)
    expect((await fetch(`http://127.0.0.2:${port}/healthz`)).status).toBe(200)
    await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow()
    await server.end()
    expect(server.stderr).toContain('did you mean RATE_LIMIT?')
  },
)

testOnce('a byte order mark at the start of .env is ignored', async () => {
  const server = await start('\uFEFFRATE_LIMIT=7\n', {})
  const answer = await fetch(`${server.origin}/v1/pets`)
  expect(answer.headers.get('ratelimit-policy')).toMatch(/q=7\b/)
})

testOnce.each<[string, Buffer]>([
  ['in UTF-16', Buffer.from('\uFEFFRATE_LIMIT=7\n', 'utf16le')],
  ['in UTF-16 without a byte order mark', Buffer.from('RATE_LIMIT=7\n', 'utf16le')],
  ['in Latin-1', Buffer.from('DATABASE_URL=mysql://x:für@x/x\n', 'latin1')],
])('a .env %s stops the start with one line', async (_, bytes) => {
  const { folder, remove } = newFolder()
  onTestFinished(remove)
  writeFileSync(path.join(folder, '.env'), bytes)
  const ended = await runToEnd(programs.server, { PORT: '0' }, [], folder)
  expect(ended).toEqual({ code: 1, stdout: '', stderr: '.env must be a text in UTF-8\n' })
})

testOnce('a .env that cannot be read stops the start with one line', async () => {
  const { folder, remove } = newFolder()
  onTestFinished(remove)
  mkdirSync(path.join(folder, '.env')) // as Docker does where the file of a mount is missing
  const ended = await runToEnd(programs.server, { PORT: '0' }, [], folder)
  expect(ended).toEqual({ code: 1, stdout: '', stderr: '.env cannot be read (EISDIR)\n' })
})

// Root may read every file.
test.runIf(engine === 'sqlite' && process.getuid?.() !== 0)(
  'a .env that this user may not read stops the start with one line',
  async () => {
    const { folder, remove } = newFolder()
    onTestFinished(remove)
    writeFileSync(path.join(folder, '.env'), 'DATABASE_URL=mysql://x:x@x/x', { mode: 0o000 })
    const ended = await runToEnd(programs.server, { PORT: '0' }, [], folder)
    expect(ended).toEqual({ code: 1, stdout: '', stderr: '.env cannot be read (EACCES)\n' })
  },
)
