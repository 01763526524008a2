/** The files in deploy/, the Dockerfile and compose, checked without running them. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import manifest from '../../package.json' with { type: 'json' }
import { readConfig } from '../../src/config/config.ts'
import { newFolder } from '../support/database.ts'
import { compose, dockerfile, imageNode, readRoot, said } from '../support/image.ts'

// test/world/runtime.test.ts starts the service on that version.
test('the stages of the image have one Node version, and it does not run as root', () => {
  expect([...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image)).toEqual([
    `docker.io/library/node:${imageNode}-slim`,
    `docker.io/library/node:${imageNode}-slim`,
  ])
  // Kubernetes can tell only of a number that it is not root.
  expect(said(/USER/)).toEqual(['1000'])
  // Another user of group 0 has the rights of the owner, as OpenShift expects.
  expect(said(/RUN/).join()).toMatch(/chown 1000:0 (data .+) && chmod g=u \1,/)
})

const units = ['petstore.service', 'petstore@.service'].map((name) => `deploy/${name}`)

// test/repository/scripts.unit.test.ts runs it.
test('npm start, the image and the units run one command', () => {
  expect(manifest.scripts.start).toBe('exec bin/petstore')
  expect(JSON.parse(said(/CMD/).join())).toEqual(['bin/petstore'])
  // The code is compiled with the options of that command.
  expect(said(/RUN/).join()).toMatch(/ bin\/petstore >\S+ & /)
  expect(said(/ENV/)).toContain('NODE_COMPILE_CACHE=/app/node_modules/.cache/node')
  for (const unit of units) {
    expect(readRoot(unit), unit).toContain('\nExecStart=/opt/petstore/bin/petstore\n')
  }
})

// test/faults/image.test.ts starts the service with these files alone.
test('Docker receives the files of the image', () => {
  const received = readRoot('.dockerignore')
    .split('\n')
    .flatMap((line) => /^!(.+)/.exec(line)?.[1] ?? [])
  const sources = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names]) =>
    `${names}`.split(' '),
  )
  expect(sources).toContain('src')
  for (const source of sources) {
    expect(
      received.some((name) => `${source}/`.startsWith(`${name}/`)),
      source,
    ).toBe(true)
  }
})

test('npm lists what the image has, for those who check it', () => {
  const args = ['sbom', '--omit=dev', '--sbom-format=cyclonedx', '--package-lock-only']
  const { status, stdout, stderr } = spawnSync('npm', args, { encoding: 'utf8' })
  expect(status, stderr).toBe(0)
  expect(JSON.parse(stdout).components.map(({ name }: { name: string }) => name)).toContain(
    'mysql2',
  )
})

test.each([...units, 'deploy/petstore-backup.service'])('%s waits for the network', (unit) => {
  for (const name of ['Wants', 'After']) {
    expect(readRoot(unit)).toContain(`\n${name}=network-online.target\n`)
  }
})

test.each(units)('%s starts the service again however often it has failed', (unit) => {
  // By default systemd gives up after five starts in ten seconds.
  const [, ofUnit = ''] = readRoot(unit).split('[Unit]\n')
  expect(ofUnit.split('\n[')[0]).toMatch(/^StartLimitIntervalSec=0$/m)
  expect(readRoot(unit)).toMatch(/^Restart=always$/m)
})

test('several processes start where sysctl is refused or missing', () => {
  expect(readRoot('deploy/petstore@.service')).toMatch(/^ExecStartPre=\+-\S+\/sysctl /m)
})

test('all units have the same sandbox', () => {
  const sandboxOf = (unit: string) =>
    /^NoNewPrivileges=.+(?=^ReadWritePaths=)/ms.exec(readRoot(unit))?.[0].replaceAll(/^#.*\n/gm, '')
  const [first, ...others] = [...units, 'deploy/petstore-backup.service'].map(sandboxOf)
  expect(first).toMatch(/^ProtectSystem=strict$/m)
  expect(others).toEqual([first, first])
  // systemd ends a unit with 226/NAMESPACE, before its first command, where another path is missing.
  const paths = units
    .concat('deploy/petstore-backup.service')
    .flatMap((unit) => `${/^ReadWritePaths=(.+)$/m.exec(readRoot(unit))?.[1]}`.split(' '))
  for (const name of paths) expect(name).toMatch(/^-\//)
  const [, folder] = /^ExecStart=\S+ (\S+)/m.exec(readRoot('deploy/petstore-backup.service')) ?? []
  expect(paths).toContain(`-${folder}`)
})

test('a backup is made each night, also when the clocks go forward, and after a night in which the machine was off', () => {
  const [, timer = ''] = readRoot('deploy/petstore-backup.timer').split('\n[Timer]\n')
  const settings = timer.split('\n[')[0]
  // Clocks skip no hour after four.
  expect(settings).toMatch(/^OnCalendar=\*-\*-\* 0[4-6]:\d\d$/m)
  expect(readRoot('deploy/kubernetes-backup.yaml')).toMatch(/^ {2}schedule: \d\d [4-6] \* \* \*$/m)
  expect(settings).toMatch(/^Persistent=true$/m)
})

test.runIf(spawnSync('systemd-analyze', ['--version']).status === 0)(
  'systemd knows each setting of the units',
  () => {
    const all = [...units, 'deploy/petstore-backup.service', 'deploy/petstore-backup.timer']
    const { stderr } = spawnSync('systemd-analyze', ['verify', ...all], { encoding: 'utf8' })
    expect(stderr).not.toMatch(/Unknown|Invalid|Failed to parse/)
  },
)

test('compose sets the database of the service, and a sufficient stop_grace_period', () => {
  const value = (name: string) => new RegExp(`^ *${name}: (\\S+)`, 'm').exec(compose)?.[1]
  const url = new URL(String(value('DATABASE_URL')))
  expect(value('MYSQL_DATABASE')).toBe(url.pathname.slice(1))
  expect(value('MYSQL_USER')).toBe(url.username)
  expect(value('MYSQL_PASSWORD')).toMatch(/^\$\{MYSQL_PASSWORD:-\w+\}$/)
  // Compose puts any password into a variable, but not percent-encoded into a URL.
  expect(value('DATABASE_PASSWORD')).toBe(value('MYSQL_PASSWORD'))
  const read = readConfig({ DATABASE_URL: url.href, DATABASE_PASSWORD: 'a/b#?%' })
  expect(new URL(read.databaseUrl).password).toBe('a%2Fb%23%3F%25')
  expect(url.host).toBe('mysql:3306')
  // Longer than the default SHUTDOWN_TIMEOUT of 10 seconds.
  expect(Number.parseInt(String(value('stop_grace_period')), 10)).toBeGreaterThan(10)
  // Plain HTTP must not pass a firewall, which Docker goes around.
  expect(compose).toMatch(/^ {4}ports:\n {6}- 127\.0\.0\.1:3000:3000$/m)
  // In place of those of .env, which the container reads, too.
  expect([value('PORT'), value('LISTEN_HOST')]).toEqual(['3000', '""'])
})

test.each([
  ['a new volume', undefined, '', 0],
  ['a volume of its release', '"version":"9.7.4"', '', 0],
  ['a volume of 8.4', '"version":"8.4.9"', '', 1],
  ['a volume of 8.4, and the tag of its server', '"version":"8.4.9"', '8.4', 0],
  ['a volume of 8.0, which has no history', '', '', 1],
])('compose starts MySQL on %s', (_, history, tag, code) => {
  const folder = newFolder()
  const write = (name: string, text: string) =>
    writeFileSync(path.join(folder, name), text, { mode: 0o700 })
  write('docker-entrypoint.sh', '#!/bin/sh\necho "$@"\n')
  if (history !== undefined) write('mysql.ibd', '')
  if (history) write('mysql_upgrade_history', `{"upgrade_history":[{${history}}]}`)
  const { entrypoint, command, image, environment } = parse(compose).services.mysql
  const [program, ...args] = entrypoint.map((text: string) =>
    text.replaceAll('$$', '$').replace('/var/lib/mysql', folder),
  )
  const env = { PATH: `${folder}:${process.env.PATH}`, MYSQL_TAG: tag }
  const { status, stdout, stderr } = spawnSync(program, [...args, ...command], {
    env,
    encoding: 'utf8',
  })
  expect([status, stdout]).toEqual([code, code ? '' : 'mysqld --skip-name-resolve\n'])
  expect(stderr).toMatch(code ? /^The volume mysql is of another release of MySQL: .+\n$/ : /^$/)
  expect(image).toMatch(/^docker\.io\/library\/mysql:\$\{MYSQL_TAG:-9\.7\}$/)
  expect(environment.MYSQL_TAG).toMatch(/^\$\{MYSQL_TAG:-\}$/)
})

test('compose checks the health as the image, whose check Podman drops', () => {
  const [, interval, timeout, start_period, test] =
    /^--interval=(\w+) --timeout=(\w+) --start-period=(\w+) CMD (.+)$/.exec(
      said(/HEALTHCHECK/).join(),
    ) ?? []
  expect(parse(compose).services.petstore.healthcheck).toEqual({
    test: ['CMD', ...JSON.parse(`${test}`)],
    ...{ interval, timeout, start_period },
  })
})

test('compose makes the first key when MySQL is ready, and starts the service after it', () => {
  const service = (name: string) =>
    compose
      .split(`\n  ${name}:\n`)[1]
      ?.split(/\n {0,2}\S/)[0]
      ?.replaceAll(/\s+/g, ' ')
  expect(service('first-key')).toContain('depends_on: mysql: condition: service_healthy')
  expect(service('petstore')).toContain(
    'depends_on: first-key: condition: service_completed_successfully',
  )
  // Over TCP: the server that sets up a new volume has only a socket.
  expect(service('mysql')).toMatch(/healthcheck: .*--host=127\.0\.0\.1/)
})

test('the 503 of HAProxy has the form of an error of the service', () => {
  const [head = '', body = ''] = readRoot('deploy/503.http').split(/\r?\n\r?\n/)
  expect(head.split(/\r?\n/)).toEqual([
    'HTTP/1.1 503 Service Unavailable',
    'Content-Type: application/json',
    'Cache-Control: no-store',
    'Retry-After: 5',
  ])
  expect(JSON.parse(body)).toEqual({
    code: 'SERVICE_UNAVAILABLE',
    message: 'The service cannot be reached right now; try again later',
    status: 503,
  })
})
