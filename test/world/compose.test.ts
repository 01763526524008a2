/** compose.yaml, run by Docker: the first start, others after it, and the mistakes that people make. */
import { execFile, execFileSync } from 'node:child_process'
import { randomBytes, X509Certificate } from 'node:crypto'
import { appendFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { type RequestOptions, request as send } from 'node:https'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { promisify } from 'node:util'
import { expect, onTestFinished, vi } from 'vitest'
import { newFolder } from '../support/database.ts'
import { blocksOf } from '../support/documents.ts'
import { compose, readRoot } from '../support/image.ts'
import { freePort } from '../support/mysql.ts'
import { composeIn, docker, withoutDocker } from './docker.ts'
import { trial } from './trial.ts'

const root = path.resolve(import.meta.dirname, '../..')

trial(
  'compose.yaml',
  async () => {
    const folder = newFolder()
    const port = await freePort()
    const text = compose
      .replace('build: .', `build: ${root}`)
      .replace('127.0.0.1:3000:3000', `127.0.0.1:${port}:3000`)
    writeFileSync(path.join(folder, 'compose.yaml'), text)
    writeFileSync(path.join(folder, '.env'), 'RATE_LIMIT=777\n')
    const run = composeIn(folder, `petstore-${randomBytes(4).toString('hex')}`, 'compose.yaml')
    onTestFinished(async () => void (await run('down', '--volumes')))
    const checked = async (...args: string[]) => {
      const { code, stdout, stderr } = await run(...args)
      expect(code, stderr).toBe(0)
      return stdout
    }
    const keyLog = () => checked('logs', '--no-log-prefix', 'first-key')
    const statusWith = async (key: string) => {
      const headers = { authorization: `Bearer ${key}` }
      return await fetch(`http://127.0.0.1:${port}/v1/pets`, { headers })
    }

    await checked('up', '--detach', '--build')
    const [first = ''] = (await keyLog()).match(/petstore_[\w-]{43}/) ?? []
    const serving = async () => {
      const answer = await statusWith(first)
      expect(answer.status).toBe(200)
      return answer
    }
    const answer = await vi.waitFor(serving, { timeout: 60_000, interval: 500 })
    expect(answer.headers.get('ratelimit-policy')).toContain('q=777') // of .env
    const create = [
      'exec',
      '-T',
      'petstore',
      'node',
      'src/cli/keys.ts',
      'create',
      'other',
      '--forever',
    ]
    expect((await statusWith((await checked(...create, '--forever')).trim())).status).toBe(200)

    await checked('down')
    await checked('up', '--detach')
    expect(await keyLog()).toMatch(
      /mysql:3306\/petstore has API keys, so none was created\n.*For another key: docker compose exec /,
    )

    await checked('restart') // waits for nothing
    await vi.waitFor(
      async () => {
        const states = await checked(
          'ps',
          '--all',
          '--format',
          '{{.Service}} {{.State}} {{.ExitCode}}',
        )
        expect(states.trim().split('\n').sort()).toEqual([
          ...['first-key exited 0', 'mysql running 0', 'petstore running 0'],
        ])
        await serving()
      },
      { timeout: 120_000, interval: 1_000 },
    )

    await checked('down')
    appendFileSync(path.join(folder, '.env'), 'MYSQL_PASSWORD=another\n')
    expect((await run('up', '--detach')).code).toBe(1)
    expect(await keyLog()).toContain('the volume mysql keeps the MYSQL_PASSWORD of its first start')
    return {
      version: await docker('compose', 'version', '--short'),
      result: 'serves, keeps its data and its first key, and says where another password is wrong',
    }
  },
  withoutDocker,
)

trial(
  'compose.tls.yaml, with HAProxy',
  async () => {
    const folder = newFolder()
    const [port, tls] = [await freePort(), await freePort()]
    cpSync(path.join(root, 'deploy'), path.join(folder, 'deploy'), { recursive: true })
    const write = (file: string, text: string) => writeFileSync(path.join(folder, file), text)
    write(
      'compose.yaml',
      compose.replace('build: .', `build: ${root}`).replace(' 127.0.0.1:3000:3000', ' 3000'),
    )
    const withTls = readRoot('compose.tls.yaml')
      .replace('- 80:80', `- 127.0.0.1:${port}:80`)
      .replace('- 443:443', `- 127.0.0.1:${tls}:443`)
    write('compose.tls.yaml', withTls)
    const read = (file: string) => readFileSync(path.join(folder, file), 'utf8')
    const certify = () => {
      const certificate =
        '-newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost'
      const files = ['-keyout', 'privkey.pem', '-out', 'fullchain.pem']
      const words = ['req', '-x509', ...certificate.split(' '), ...files]
      execFileSync('openssl', words, { cwd: folder, stdio: 'ignore' })
      return new X509Certificate(read('fullchain.pem')).fingerprint256
    }
    const project = `petstore-${randomBytes(4).toString('hex')}`
    const run = composeIn(folder, project, 'compose.yaml', 'compose.tls.yaml')
    onTestFinished(async () => void (await run('down', '--volumes')))
    /** Runs the block of docs/operating.md with these words, as one who needs no sudo for it. */
    const runBlock = async (words: string) => {
      const blocks = blocksOf(path.join(root, 'docs/operating.md'))
      const lines = blocks.find(({ code }) => code.includes(words))?.code ?? ''
      const own = lines
        .replace('petstore.example', 'localhost')
        .replace('up --detach', 'up --detach --build')
        .replaceAll('sudo ', process.getuid?.() === 0 ? '' : 'sudo ')
      const env = { ...process.env, COMPOSE_PROJECT_NAME: project }
      await promisify(execFile)('sh', ['-ec', own], { cwd: folder, env })
    }
    certify()
    await runBlock('umask 077')
    const [key = ''] = (await run('logs', 'first-key')).stdout.match(/petstore_[\w-]{43}/) ?? []

    const call = (options: RequestOptions, body?: string) =>
      new Promise<IncomingMessage>((resolve, reject) => {
        const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
        const given = { headers, agent: false as const, ...options }
        const sent = send(`https://localhost:${tls}/v1/pets`, given, (answer) =>
          resolve(answer.resume()),
        )
        sent.on('error', reject).end(body)
      })
    const body = JSON.stringify({ name: 'Rex', categoryId: 1 })
    const answer = await vi.waitFor(
      () => call({ method: 'POST', ca: read('fullchain.pem') }, body),
      {
        timeout: 60_000,
        interval: 500,
      },
    )
    expect([answer.statusCode, answer.headers.location]).toEqual([
      201,
      'https://localhost/v1/pets/1',
    ])
    expect(answer.headers['strict-transport-security']).toMatch(/^max-age=/)

    const renewed = certify()
    const shown: string[] = []
    const calls = Array.from({ length: 60 }, async (_, index) => {
      await wait(index * 100)
      const { statusCode, socket } = await call({ rejectUnauthorized: false })
      shown.push((socket as TLSSocket).getPeerCertificate().fingerprint256)
      expect(statusCode).toBe(200)
    })
    await Promise.all([...calls, runBlock('USR2')])
    expect(shown[0]).not.toBe(renewed)
    expect(shown.at(-1)).toBe(renewed)
    const redirected = await fetch(`http://127.0.0.1:${port}/v1/pets`, { redirect: 'manual' })
    expect(redirected.status).toBe(308)
    const version = await run('exec', 'haproxy', 'haproxy', '-v')
    return {
      version: /\d+\.\d+\.\d+/.exec(version.stdout)?.[0] ?? '',
      result:
        'serves a host name with its certificate, redirects to it, and loses none of 60 calls as it is replaced',
    }
  },
  withoutDocker,
)
