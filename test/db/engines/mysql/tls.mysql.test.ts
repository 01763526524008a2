/** Encrypted connections to a MySQL server, also with client certificates: `ssl-mode` and others in DATABASE_URL. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { sql } from 'kysely'
import { afterAll, expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../../../../db/connect.ts'
import { Deadline } from '../../../../db/deadline.ts'
import { DatabaseTimeoutError } from '../../../../db/errors.ts'
import { execute } from '../../../../db/statement.ts'
import { mysqlForFile, newDatabase, newFolder } from '../../../support/database.ts'
import { running } from '../../../support/instance.ts'
import { startMysql } from '../../../support/mysql.ts'
import { programs, runToEnd } from '../../../support/process.ts'
import { openSql } from '../../../support/sql.ts'
import { runFirst } from '../../../support/watched.ts'

const folder = newFolder(afterAll)
const certificate = path.join(folder, 'certificate.pem')
const key = path.join(folder, 'key.pem')
const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
const made = ['-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', certificate]
execFileSync('openssl', ['req', '-x509', ...made, ...subject], { stdio: 'pipe' })
/** The server's certificate is the authority of its clients, too. */
const encrypted = await mysqlForFile([
  ...[`--ssl-cert=${certificate}`, `--ssl-key=${key}`, `--ssl-ca=${certificate}`],
])
const clear = await openSql(encrypted.url)
await clear('set global require_secure_transport = on')
await clear.close()

/** For mysql2 itself, which the tests use. */
const OWN = '?ssl={"rejectUnauthorized":false}'

/** Returns the URL of a new database, at this host. */
async function newUrl(mode: string, hostname = '127.0.0.1'): Promise<string> {
  const { url, remove } = await newDatabase(encrypted.url + OWN)
  onTestFinished(remove)
  return Object.assign(new URL(url), { hostname, search: `?ssl-mode=${mode}` }).href
}

test('REQUIRED encrypts all connections, also the one that ends a statement', async () => {
  await expect(openSql(encrypted.url), 'clear text').rejects.toThrow()
  const db = await connect(await newUrl('REQUIRED'))
  onTestFinished(() => db.destroy())
  const { rows } = await execute(db, sql<{ Value: string }>`show status like 'Ssl_cipher'`)
  expect(rows).toEqual([expect.objectContaining({ Value: expect.stringMatching(/./) })])

  using deadline = new Deadline(300)
  const sleep = db.kysely.selectNoFrom(sql`sleep(30)`.as('slept'))
  await expect(execute(db, sleep, deadline)).rejects.toThrow(DatabaseTimeoutError)
  await using admin = await openSql(encrypted.url + OWN)
  await vi.waitFor(async () => expect(await running(admin, '%sleep(30)%')).toEqual([]), 20_000)
})

const migrate = async (url: string, variables = {}) =>
  await runToEnd(programs.migrate, { DATABASE_URL: url, ...variables })

const trusted = { NODE_EXTRA_CA_CERTS: certificate }
const good = { code: 0, stderr: '' }

/** What a command prints that cannot use the database for a reason that begins like this. */
const fails = (reason: string) => ({
  code: 1,
  stdout: '',
  stderr: expect.stringMatching(
    new RegExp(`^DATABASE_URL: cannot use the database \\S+: ${reason}.*\n$`),
  ),
})

test('VERIFY_CA accepts the certificates of NODE_EXTRA_CA_CERTS alone; VERIFY_IDENTITY compares the host name', async () => {
  const url = await newUrl('VERIFY_CA', 'localhost')
  expect(await migrate(url)).toEqual(fails('self-signed certificate'))
  expect(await migrate(await newUrl('VERIFY_IDENTITY', 'localhost'), trusted)).toMatchObject(good)
  const resolved = runFirst(`import dns from 'node:dns'
    dns.lookup = (_name, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }])`)
  const run = async (mode: string) =>
    migrate(await newUrl(mode, 'db.example'), { ...trusted, ...resolved })
  expect(await run('VERIFY_CA')).toMatchObject(good)
  expect(await run('VERIFY_IDENTITY')).toEqual(fails("Hostname/IP does not match certificate's"))
})

test('REQUIRED never sends clear text: a server without TLS fails the start', async () => {
  const plain = await startMysql(['--loose-skip-ssl', '--loose-tls-version='])
  onTestFinished(plain.remove)
  const { url } = await newDatabase(plain.url)
  expect(await migrate(`${url}?ssl-mode=REQUIRED`)).toEqual(
    fails('Server does not support secure connection'),
  )
})

/** Makes the certificate and the key of a client, and returns their files. */
function newClient() {
  const [cert = '', ownKey = '', request = ''] = ['cert', 'key', 'request'].map((name) =>
    path.join(newFolder(), `${name}.pem`),
  )
  const requested = ['req', '-newkey', 'rsa:2048', '-nodes', '-keyout', ownKey, '-out', request]
  execFileSync('openssl', [...requested, '-subj', '/CN=client'], { stdio: 'pipe' })
  const signed = ['x509', '-req', '-in', request, '-CA', certificate, '-CAkey', key]
  execFileSync('openssl', [...signed, '-set_serial', '2', '-out', cert], { stdio: 'pipe' })
  return { cert, key: ownKey }
}

/** Returns the URL of a new database for a new user who needs a client certificate. */
async function urlOfCertified(query: string): Promise<string> {
  const url = new URL(await newUrl('REQUIRED', 'localhost'))
  await using admin = await openSql(encrypted.url + OWN)
  const name = `certified${url.pathname.slice(-8)}`
  await admin(`create user ${name}@'%' identified by 'secret' require x509`)
  await admin(`grant all on *.* to ${name}@'%'`)
  return Object.assign(url, { username: name, password: 'secret', search: query }).href
}

test('a user with REQUIRE X509 logs in by ssl-cert and ssl-key, and ssl-ca is the authority', async () => {
  const client = newClient()
  const query = `?ssl-key=${client.key}&ssl-ca=${certificate}&ssl-mode=VERIFY_IDENTITY&ssl-cert=${client.cert}`
  const url = await urlOfCertified(query)
  expect(await migrate(url)).toMatchObject(good)
  const without = url.replace(query, '?ssl-mode=REQUIRED')
  const remedy =
    'if it requires a client certificate, DATABASE_URL must have ssl-cert and ssl-key, too'
  expect(await migrate(without)).toEqual(fails(`Access denied for user .*; ${remedy}`))
  const foreign = url.replace(`ssl-ca=${certificate}`, `ssl-ca=${client.cert}`)
  expect(await migrate(foreign)).toEqual(fails('self-signed certificate'))
})

test('certificates are read again when a connection is opened, and wrong ones end no process', async () => {
  const [client, files] = [newClient(), newClient()]
  const query = `?ssl-mode=REQUIRED&ssl-cert=${files.cert}&ssl-key=${files.key}`
  const url = await urlOfCertified(query)
  const look = async (db: Awaited<ReturnType<typeof connect>>) =>
    (await execute(db, sql`select 1 as one`)).rows
  const db = await connect(url)
  onTestFinished(() => db.destroy())
  writeFileSync(files.cert, 'half a certif')
  await expect(look(db)).rejects.toThrow('cannot be used')
  copyFileSync(client.cert, files.cert) // of another key
  await expect(look(db)).rejects.toThrow('cannot be used')
  copyFileSync(client.key, files.key)
  await vi.waitFor(async () => expect(await look(db)).toEqual([{ one: 1n }]), 20_000)
})
