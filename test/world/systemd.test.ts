/** The units of deploy/ on a booted systemd, in a container of the image PETSTORE_SYSTEMD_IMAGE. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { blocksOf } from '../support/documents.ts'
import { docker, execute, withoutDocker } from './docker.ts'
import { trial } from './trial.ts'

const root = path.resolve(import.meta.dirname, '../..')

/** It boots systemd as process 1, and has Node 20, npm, curl and MariaDB. */
const { PETSTORE_SYSTEMD_IMAGE: image } = process.env

trial(
  'The units of systemd',
  async () => {
    expect(image).toBeDefined()
    const boot = [
      '--privileged',
      '--cgroupns',
      'private',
      '--tmpfs',
      '/run',
      '--tmpfs',
      '/tmp:exec',
    ]
    const name = await docker('run', '--detach', ...boot, `${image}`)
    onTestFinished(async () => void (await docker('rm', '--force', name)))
    /** Runs commands in the machine, and returns their output. Throws it if one fails. */
    const run = async (commands: string) => {
      const ran = await execute('docker', ['exec', name, 'sh', '-ec', commands])
      if (ran.code !== 0) throw new Error(`${commands}: ${ran.stdout}${ran.stderr}`)
      return ran.stdout
    }
    await execute('docker', ['exec', name, 'systemctl', 'is-system-running', '--wait'])
    const own = ['.git', 'node_modules', 'dist', 'data', '.env'].map((file) => `--exclude=${file}`)
    await copyTo(name, '/opt/petstore', 'tar', ['--create', ...own, '.'])
    // What the header of petstore.service says.
    await run(`cd /opt/petstore && npm ci && useradd --system --create-home petstore && cp deploy/*.service deploy/*.timer /etc/systemd/system/
      mkdir data node_modules/.cache && chown petstore data node_modules/.cache && systemctl daemon-reload`)

    // Another process has its PORT, and answers with 200.
    await run(`cat > /etc/systemd/system/other@.service <<END
[Service]
Environment=PORT=%i
ExecStart=/opt/petstore/bin/node -e 'http.createServer((_, res) => res.end()).listen(process.env.PORT)'
END
      systemctl daemon-reload; systemctl start other@3000
      until curl --silent localhost:3000; do sleep 0.1; done`)
    const failure = 'service failed'
    await expect(run('systemctl start petstore')).rejects.toThrow(failure)
    await run('systemctl stop petstore other@3000')

    await run('systemctl start petstore && curl --fail localhost:3000/readyz')
    for (const unit of ['petstore', 'petstore-backup']) {
      const exposure = await run(`systemd-analyze security ${unit}`)
      expect(Number(/exposure level .*: ([\d.]+)/.exec(exposure)?.[1])).toBeLessThan(1.5)
    }
    expect(await run('journalctl -t petstore')).toContain('Petstore is running')

    // Two upgrades in a row, to the same release, by the lines of the page: data and backups stay.
    await run(`touch /opt/petstore/.env; systemctl start petstore-backup.timer
      install -d -o petstore /opt/petstore/data/backups; touch /opt/petstore/data/backups/petstore-2099-01-02T023000Z.db
      ${BESIDE}
      ${upgrade('systemctl stop')}
      ${upgrade('/data/backups')}
      ${BESIDE}
      ${upgrade('systemctl stop')}`)
    await run('systemctl is-active petstore && curl --fail localhost:3000/readyz')
    expect(await run("stat --format '%U %a' /var/backups/petstore")).toBe('petstore 700\n')
    const backups = /^petstore-20[2-8].+\.db\npetstore-2099-01-02T023000Z\.db\n$/
    expect(await run('ls /var/backups/petstore; ls /opt/petstore/data/backups')).toMatch(backups)

    await run('systemctl stop petstore; echo PORT=abc > /opt/petstore/.env')
    await expect(run('systemctl start petstore')).rejects.toThrow('Job for petstore.service failed')
    const show = 'systemctl show petstore -p NRestarts -p ExecMainStatus -p ActiveState'
    expect((await run(`sleep 3; ${show}`)).trim().split('\n')).toEqual([
      ...['NRestarts=0', 'ExecMainStatus=78', 'ActiveState=failed'],
    ])

    expect(await run('journalctl -t petstore -p crit')).toContain('PORT must be an integer')
    expect(await run('journalctl -t petstore -p crit')).not.toContain('request')

    await run(`cd /opt/petstore && rm .env && mv data elsewhere
      systemctl start petstore || true; systemctl stop petstore`)
    expect(await run('journalctl -t petstore')).toMatch(/run install -d -o \d+ data as root/)

    await run(`systemctl start mariadb; cd /opt/petstore
      mariadb -e "create database petstore; create user petstore@'%' identified by 'sesame';
        grant all on petstore.* to petstore@'%'"
      echo DATABASE_URL=mysql://petstore:sesame@127.0.0.1/petstore > .env
      mv /usr/sbin/sysctl /usr/sbin/sysctl.away
      systemctl start petstore@9464
      systemctl stop petstore@9464
      mv /usr/sbin/sysctl.away /usr/sbin/sysctl`)
    // Another process has the METRICS_PORT of the first one, and answers with 200.
    await run(`systemctl start other@9464
      until curl --silent localhost:9464; do sleep 0.1; done`)
    await expect(run('systemctl start petstore@9464')).rejects.toThrow(failure)
    await run('systemctl stop petstore@9464 other@9464')

    await run('systemctl start petstore@9464 petstore@9465')
    // The previous release, with the packages of this one.
    await copyTo(name, '/opt/petstore-new', 'git', ['archive', previous])
    const counts = await run(`cat > /tmp/calls.mjs <<END
        import { request } from 'node:http'
        import { existsSync } from 'node:fs'
        const call = (path, headers, body) => new Promise((resolve) =>
          request('http://127.0.0.1:3000' + path, { agent: false, method: body ? 'POST' : 'GET', headers }, async (res) =>
            resolve([res.statusCode, (await res.toArray()).join('')]))
            .on('error', ({ code }) => resolve([code])).end(body))
        const counts = {}
        const read = async () => {
          while (!existsSync('/tmp/back')) {
            const [outcome] = await call('/healthz')
            counts[outcome] = (counts[outcome] ?? 0) + 1
          }
        }
        const create = (key) => call('/v1/pets', {
          'Authorization': 'Bearer ' + process.argv[2], 'Content-Type': 'application/json', 'Idempotency-Key': key,
        }, JSON.stringify({ name: key, categoryId: 1 }))
        const made = new Map()
        const write = async () => {
          while (!existsSync('/tmp/forward')) {
            const key = 'pet-' + made.size
            const [outcome, pet] = await create(key)
            if (outcome === 201) made.set(key, pet)
            await new Promise((next) => setTimeout(next, 25))
          }
        }
        await Promise.all([write(), ...Array.from({ length: 10 }, read)])
        let lost = 0
        for (const [key, pet] of made) if ((await create(key))[1] !== pet) lost += 1
        console.log(JSON.stringify({ counts, made: made.size, lost }))
END
      cd /opt/petstore; sudo -u petstore bin/keys create x --forever > /tmp/key
      install -d -o petstore data
      bin/node /tmp/calls.mjs $(cat /tmp/key) > /tmp/counts &
      for restart in $(seq 10); do systemctl restart petstore@9464; systemctl restart petstore@9465; done
      cp -a node_modules /opt/petstore-new/; rm -rf /opt/petstore-old
      ${upgrade('petstore@9464')?.replace(/^cp .*petstore-backup.*\n/m, '')}
      cmp /etc/systemd/system/petstore@.service /opt/petstore/deploy/petstore@.service
      touch /tmp/back # because 2.0.0 resets a few connections as it stops
      mv /opt/petstore-old /opt/petstore-new
      ${upgrade('petstore@9464')}
      touch /tmp/forward; wait; cat /tmp/counts`)
    const calls = JSON.parse(counts)
    expect(calls).toEqual({
      counts: { 200: expect.any(Number) },
      made: expect.any(Number),
      lost: 0,
    })
    const rows = await run(`mariadb --skip-column-names petstore -e 'select count(*) from pets'`)
    expect(Number(rows)).toBe(calls.made)
    // A dump, by a drop-in, where there is no data/.
    await run(`rm -r /opt/petstore/data; cd /opt/petstore
      mkdir /etc/systemd/system/petstore-backup.service.d
      sed -n 's/^# \\(\\[Service\\]\\|ExecStart=\\)/\\1/p' deploy/petstore-backup.service |
        sed 's/mysqldump --defaults-extra-file=[^ ]*/mariadb-dump --host=127.0.0.1 --password=sesame/' \\
        > /etc/systemd/system/petstore-backup.service.d/override.conf
      systemctl daemon-reload; systemctl start petstore-backup`)
    expect(await run('ls /var/backups/petstore')).toMatch(/^petstore-20[2-8].+\.sql$/m)
    return {
      version: /systemd (\d+)/.exec(await run('systemctl --version'))?.[1] ?? '',
      result: `ten rolling restarts and the way to the previous release refuse none of ${calls.counts[200]} calls; with the upgrade from it, they lose none of ${calls.made} creations; few rights; a wrong variable ends the attempts`,
    }
  },
  withoutDocker ?? (image ? undefined : 'PETSTORE_SYSTEMD_IMAGE names no image'),
)

/** Installs the same release beside the one that runs, without what belongs to the installation. */
const BESIDE = `rm -rf /opt/petstore-old; cp -a /opt/petstore /opt/petstore-new
  rm -rf /opt/petstore-new/data /opt/petstore-new/.env`

/** Returns the lines of docs/upgrades.md with these words. */
const upgrade = (words: string) =>
  blocksOf(path.join(root, 'docs/upgrades.md')).find(({ code }) => code.includes(words))?.code

/** The commit of the newest release that the page names. */
const [, previous = ''] =
  /^\| [\d.]+ \| `(\w+)` \|/m.exec(readFileSync(path.join(root, 'docs/upgrades.md'), 'utf8')) ?? []

/** Unpacks the archive that a program makes of this repository into a new folder of a container. */
async function copyTo(name: string, folder: string, program: string, args: string[]) {
  const archive = spawn(program, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
  const unpack = `mkdir ${folder} && tar --extract --directory ${folder} --no-same-owner`
  const target = spawn('docker', ['exec', '--interactive', name, 'sh', '-c', unpack], {
    stdio: ['pipe', 'inherit', 'inherit'],
  })
  archive.stdout.pipe(target.stdin)
  const [code] = await once(target, 'close')
  expect(code).toBe(0)
}
