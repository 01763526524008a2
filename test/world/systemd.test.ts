/** The units of deploy/ on a booted systemd, in a container of the image PETSTORE_SYSTEMD_IMAGE. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
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
    await copyTo(name)
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
    const calls = await run(`cat > /tmp/calls.mjs <<END
        import { get } from 'node:http'
        import { existsSync } from 'node:fs'
        const counts = {}
        const call = () => new Promise((resolve) =>
          get('http://127.0.0.1:3000/healthz', { agent: false }, (res) => resolve(res.resume().statusCode))
            .on('error', ({ code }) => resolve(code)))
        const caller = async () => {
          while (!existsSync('/tmp/restarted')) {
            const outcome = await call()
            counts[outcome] = (counts[outcome] ?? 0) + 1
          }
        }
        await Promise.all(Array.from({ length: 10 }, caller))
        console.log(JSON.stringify(counts))
END
      install -d -o petstore /opt/petstore/data
      /opt/petstore/bin/node /tmp/calls.mjs > /tmp/counts &
      for restart in $(seq 10); do systemctl restart petstore@9464; systemctl restart petstore@9465; done
      ${BESIDE}
      ${upgrade('petstore@9464')}
      touch /tmp/restarted; wait; cat /tmp/counts`)
    expect(JSON.parse(calls)).toEqual({ 200: expect.any(Number) })
    // A dump, by a drop-in, where there is no data/.
    await run(`rm -r /opt/petstore/data; cd /opt/petstore; sudo -u petstore bin/keys create x --forever
      mkdir /etc/systemd/system/petstore-backup.service.d
      sed -n 's/^# \\(\\[Service\\]\\|ExecStart=\\)/\\1/p' deploy/petstore-backup.service |
        sed 's/mysqldump --defaults-extra-file=[^ ]*/mariadb-dump --host=127.0.0.1 --password=sesame/' \\
        > /etc/systemd/system/petstore-backup.service.d/override.conf
      systemctl daemon-reload; systemctl start petstore-backup`)
    expect(await run('ls /var/backups/petstore')).toMatch(/^petstore-20[2-8].+\.sql$/m)
    return {
      version: /systemd (\d+)/.exec(await run('systemctl --version'))?.[1] ?? '',
      result: `ten rolling restarts and an upgrade refuse none of ${JSON.parse(calls)[200]} calls; few rights; a wrong variable ends the attempts`,
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

/** Copies this repository to /opt/petstore of a container, without what it has installed. */
async function copyTo(name: string): Promise<void> {
  const own = ['.git', 'node_modules', 'dist', 'data', '.env'].map((file) => `--exclude=${file}`)
  const tar = spawn('tar', ['--create', ...own, '.'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const unpack = 'mkdir /opt/petstore && tar --extract --directory /opt/petstore --no-same-owner'
  const target = spawn('docker', ['exec', '--interactive', name, 'sh', '-c', unpack], {
    stdio: ['pipe', 'inherit', 'inherit'],
  })
  tar.stdout.pipe(target.stdin)
  const [code] = await once(target, 'close')
  expect(code).toBe(0)
}
