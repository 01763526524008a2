/** The manifests of deploy/: their fields, by the types of Kubernetes, and what they say of the service. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { readConfig } from '../../src/config/config.ts'
import { newFolder } from '../support/database.ts'
import { blocksOf } from '../support/documents.ts'
import { readRoot } from '../support/image.ts'

const root = path.join(import.meta.dirname, '../..')
const files = [
  ...['kubernetes.yaml', 'kubernetes-secret.yaml', 'kubernetes-key.yaml'],
  ...['kubernetes-backup.yaml', 'kubernetes-network.yaml'],
]
const objectsOf = (text: string) => parseAllDocuments(text).map((document) => document.toJS())

/** Compiles the objects of manifests as literals of their types, and returns the errors of the compiler. */
function typeErrors(texts: string[]): string[] {
  const folder = newFolder()
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  const names = texts.map((text, index) => {
    const lines = objectsOf(text).map((object, index) => {
      const version = object.apiVersion.includes('/')
        ? object.apiVersion.replace('.k8s.io', '')
        : `core/${object.apiVersion}`
      const type = `import('kubernetes-types/${version}').${object.kind}`
      return `export const object${index}: ${type} = ${JSON.stringify(object)}`
    })
    writeFileSync(path.join(folder, `manifest-${index}.ts`), lines.join('\n'))
    return `manifest-${index}.ts`
  })
  const options = [
    '--checkers',
    '1',
    '--noEmit',
    '--strict',
    '--module',
    'nodenext',
    '--types',
    '',
    ...names,
  ]
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc')
  const { stdout } = spawnSync(process.execPath, [tsc, ...options], {
    cwd: folder,
    encoding: 'utf8',
  })
  return stdout.match(/^manifest.+/gm) ?? []
}

test('each manifest has only fields that Kubernetes knows', () => {
  const texts = files.map((file) => readRoot(`deploy/${file}`))
  expect(typeErrors(texts)).toEqual([])
  const wrong = texts.map((text) => text.replace('metadata:', 'metaData:'))
  expect(typeErrors(wrong)).toEqual(
    files.map((_, index) => expect.stringMatching(`^manifest-${index}\\.ts.+metaData`)),
  )
})

const [deployment, service, budget, ...others] = objectsOf(readRoot('deploy/kubernetes.yaml'))
const [secret] = objectsOf(readRoot('deploy/kubernetes-secret.yaml'))
const [job] = objectsOf(readRoot('deploy/kubernetes-key.yaml'))
const [policy] = objectsOf(readRoot('deploy/kubernetes-network.yaml'))
const [monitor] = objectsOf(readRoot('deploy/kubernetes-monitor.yaml'))
const [, cronJob] = objectsOf(readRoot('deploy/kubernetes-backup.yaml'))
const backup = cronJob.spec.jobTemplate.spec.template.spec
const { template } = deployment.spec
const [container] = template.spec.containers

test('what is applied at each release replaces no Secret, and changes no Job, which nobody may', () => {
  expect(others).toEqual([])
  expect([secret.kind, job.kind]).toEqual(['Secret', 'Job'])
  expect(job.metadata).toEqual({ generateName: expect.any(String) })
})

test('the Pods of the Deployment are selected by all that is for them', () => {
  const { labels } = template.metadata
  expect(deployment.spec.selector.matchLabels).toEqual(labels)
  expect(service.spec.selector).toEqual(labels)
  expect(budget.spec.selector.matchLabels).toEqual(labels)
  expect(template.spec.topologySpreadConstraints).toMatchObject([
    { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: labels } },
  ])
  expect(policy.spec.podSelector.matchLabels).toEqual(labels)
  expect(monitor.spec.selector.matchLabels).toEqual(labels)
  const ports = container.ports.map(({ name }: { name: string }) => name)
  expect(ports).toContain(service.spec.ports[0].targetPort)
  const allowed = policy.spec.ingress.map((rule: { ports: unknown[] }) => rule.ports)
  expect(allowed).toEqual(ports.map((port: string) => [{ port }]))
  expect(ports).toContain(monitor.spec.podMetricsEndpoints[0].port)
})

test('each container has resources', () => {
  for (const { initContainers = [], containers } of [
    template.spec,
    job.spec.template.spec,
    backup,
  ]) {
    for (const { resources } of [...initContainers, ...containers]) {
      expect(resources).toEqual({
        requests: { cpu: expect.any(String), memory: expect.any(String) },
        limits: { memory: expect.any(String) },
      })
    }
  }
})

test('each Pod obeys the restricted standard, and reads the Secret from files', () => {
  for (const { spec } of [template, job.spec.template, { spec: backup }]) {
    expect(spec).toMatchObject({ enableServiceLinks: false, automountServiceAccountToken: false })
    expect(spec.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    expect(spec.containers[0].securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    const { env = [], args, volumeMounts } = spec.containers[0]
    const used = JSON.stringify([env, args]).matchAll(/\/run\/secrets\/petstore\/([\w-]+)/g)
    const names = [...used].map(([, name]) => name)
    expect(names).not.toEqual([])
    for (const name of names) expect(Object.keys(secret.stringData)).toContain(name)
    expect(volumeMounts[0]).toMatchObject({ mountPath: '/run/secrets/petstore', readOnly: true })
  }
  // Unreplaced, a version would go on as that release, without a word.
  expect(container.image).toBe('petstore:TAG')
  expect(job.spec.template.spec.containers[0].image).toBe(container.image)
  const [tools] = backup.initContainers
  expect(tools.image).toBe(container.image)
  expect(tools.securityContext).toEqual(backup.containers[0].securityContext)
})

test('the variables are those of the service, and a Pod stops in time', () => {
  const folder = newFolder()
  const variables = Object.fromEntries(
    container.env.map(({ name, value }: { name: string; value: string }) => [name, value]),
  )
  for (const [name, file] of Object.entries<string>(variables)) {
    if (!name.endsWith('_FILE')) continue
    variables[name] = path.join(folder, path.basename(file))
    writeFileSync(variables[name], secret.stringData[path.basename(file)])
  }
  const config = readConfig(variables)
  expect(config).toMatchObject({ warnings: [], metricsHost: undefined, shutdownDelay: 5_000 })
  const { databaseTimeout, shutdownDelay, shutdownTimeout } = config
  expect(shutdownTimeout - shutdownDelay - databaseTimeout).toBeGreaterThan(4_000)
  expect(template.spec.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(shutdownTimeout)
  expect(container.ports[1].containerPort).toBe(config.metricsPort)
  // /readyz answers within a second while the database hangs. By it a Pod would be restarted at each outage.
  const asks = (path: string) => ({ httpGet: { path, port: 'http' } })
  expect(container).toMatchObject({
    readinessProbe: { ...asks('/readyz'), timeoutSeconds: 2 },
    livenessProbe: asks('/healthz'),
    startupProbe: asks('/healthz'),
  })
})

test('a backup that takes longer than a day is not begun a second time', () => {
  expect(cronJob.spec.concurrencyPolicy).toBe('Forbid')
})

test('the lines of operating.md make the alerts a PrometheusRule', () => {
  const bin = newFolder()
  writeFileSync(path.join(bin, 'kubectl'), '#!/bin/sh\nexec cat\n', { mode: 0o755 })
  const blocks = blocksOf(path.join(root, 'docs/operating.md'), '## Kubernetes', '\n## ')
  const lines = blocks.find(({ code }) => code.includes('PrometheusRule'))?.code ?? ''
  const env = { PATH: `${bin}:${process.env.PATH}` }
  const { stdout } = spawnSync('sh', ['-ec', lines], { cwd: root, env, encoding: 'utf8' })
  expect(objectsOf(stdout)).toEqual([
    {
      apiVersion: monitor.apiVersion,
      kind: 'PrometheusRule',
      metadata: monitor.metadata,
      spec: objectsOf(readRoot('deploy/alerts.yml'))[0],
    },
  ])
})

const ROWS = '"CREATE TABLE pets (" "CREATE TABLE api_keys (" "INSERT INTO api_keys VALUES"'
const WHOLE = `printf "%s\\n" ${ROWS} "-- Dump completed"`

test.each([
  ['whole', WHOLE, 0],
  ['half', 'echo "CREATE TABLE pets ("', 1],
  ['without tables', 'echo "-- Dump completed"', 1],
  ['of a program that fails', `${WHOLE}; exit 2`, 2],
])('the script of the CronJob with a dump that is %s', (_, commands, code) => {
  const [bin, secrets, backups] = [newFolder(), newFolder(), newFolder()]
  const mysqldump = `#!/bin/sh\n[ "$MYSQL_PWD" = change-me ] || exit 3\n${commands}\n`
  writeFileSync(path.join(bin, 'mysqldump'), mysqldump, { mode: 0o755 })
  writeFileSync(path.join(secrets, 'database-password'), secret.stringData['database-password'])
  const kept = ['monthly/petstore-2026-01-02T023000Z.sql', 'other.sql']
  const old = 'petstore-2026-01-02T023000Z.sql'
  mkdirSync(path.join(backups, 'monthly'))
  for (const name of [...kept, old]) writeFileSync(path.join(backups, name), '')

  // What the first container copies, from the folder in which the image starts it.
  const [{ command: copy }] = backup.initContainers
  expect(copy).toEqual(['cp', 'bin/backup', '/tools/'])
  copyFileSync(path.join(root, 'bin/backup'), path.join(bin, 'backup'))
  const { command, args, volumeMounts } = backup.containers[0]
  const places: Record<string, string> = { secret: secrets, backups, tools: bin }
  const script = volumeMounts.reduce(
    (text: string, { name, mountPath }: { name: string; mountPath: string }) =>
      text.replaceAll(` ${mountPath}`, ` ${places[name]}`),
    args[0],
  )
  const env = { PATH: `${bin}:${process.env.PATH}` }
  const { status } = spawnSync(command[0], [...command.slice(1), script], { env })
  expect(status).toBe(code)
  const files = readdirSync(backups, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name !== 'monthly',
  )
  const made = code === 0 ? expect.stringMatching(/^petstore-2\S+Z\.sql$/) : old
  expect(files.sort()).toEqual([...kept, made])
})
