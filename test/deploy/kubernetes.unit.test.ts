/** The manifests of deploy/: their fields, by the types of Kubernetes, and what they say of the service. */
import { spawnSync } from 'node:child_process'
import { symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { readConfig } from '../../src/config/config.ts'
import { newFolder } from '../support/database.ts'
import { readRoot } from '../support/image.ts'

const root = path.join(import.meta.dirname, '../..')
const files = ['kubernetes.yaml', 'kubernetes-backup.yaml']
const objectsOf = (text: string) => parseAllDocuments(text).map((document) => document.toJS())

/** Compiles the objects of a manifest as literals of their types, and returns what the compiler says. */
function typeErrors(text: string): string {
  const folder = newFolder()
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  const lines = objectsOf(text).map((object, index) => {
    const version = object.apiVersion.includes('/')
      ? object.apiVersion
      : `core/${object.apiVersion}`
    const type = `import('kubernetes-types/${version}').${object.kind}`
    return `export const object${index}: ${type} = ${JSON.stringify(object)}`
  })
  writeFileSync(path.join(folder, 'manifest.ts'), lines.join('\n'))
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--types', '', 'manifest.ts']
  const tsc = path.join(root, 'node_modules/typescript/bin/tsc')
  const { stdout } = spawnSync(process.execPath, [tsc, ...options], {
    cwd: folder,
    encoding: 'utf8',
  })
  return stdout
}

test.each(files)('%s has only fields that Kubernetes knows', (file) => {
  const text = readRoot(`deploy/${file}`)
  expect(typeErrors(text)).toBe('')
  expect(typeErrors(text.replace('readOnlyRootFilesystem', 'readOnlyRootFileSystem'))).toContain(
    'readOnlyRootFileSystem',
  )
})

const [secret, deployment, service, budget, job] = objectsOf(readRoot('deploy/kubernetes.yaml'))
const [, cronJob] = objectsOf(readRoot('deploy/kubernetes-backup.yaml'))
const { template } = deployment.spec
const [container] = template.spec.containers

test('the Service and the PodDisruptionBudget select the Pods of the Deployment', () => {
  const { labels } = template.metadata
  expect(deployment.spec.selector.matchLabels).toEqual(labels)
  expect(service.spec.selector).toEqual(labels)
  expect(budget.spec.selector.matchLabels).toEqual(labels)
  const ports = container.ports.map(({ name }: { name: string }) => name)
  expect(ports).toContain(service.spec.ports[0].targetPort)
})

test('each Pod obeys the restricted standard, and reads the Secret from files', () => {
  for (const { spec } of [template, job.spec.template, cronJob.spec.jobTemplate.spec.template]) {
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
  expect(job.spec.template.spec.containers[0].image).toBe(container.image)
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
  // /readyz answers within a second while the database hangs.
  expect(container.readinessProbe).toMatchObject({ timeoutSeconds: 2 })
})
