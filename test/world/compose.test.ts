/** compose.yaml, run by Docker: the first start, others after it, and the mistakes that people make. */
import { randomBytes } from 'node:crypto'
import { appendFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, vi } from 'vitest'
import { newFolder } from '../support/database.ts'
import { compose } from '../support/image.ts'
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
