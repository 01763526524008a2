/** Alerts, dashboard and runbook use existing metrics, and refer to each other. */
import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../support/mysql.ts'
import { runServer, type ServerProgram } from '../support/process.ts'

const root = path.join(import.meta.dirname, '../..')
const read = (file: string) => readFileSync(path.join(root, file), 'utf8')
const rules = read('deploy/alerts.yml')
const runbook = read('docs/runbook.md')

interface Dashboard {
  panels: {
    title: string
    fieldConfig: { defaults: { unit: string } }
    targets: { expr: string; legendFormat: string }[]
  }[]
  templating: { list: { name: string; type: string }[] }
}
const dashboard: Dashboard = JSON.parse(read('deploy/grafana.json'))
const expressions = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))

const names = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, name]) => name)

test('each alert links to its section of the runbook, and each section has an alert', () => {
  const alerts = names(rules, /- alert: (\w+)/g)
  expect(alerts.length).toBeGreaterThan(5)
  expect(names(runbook, /^## (Petstore\w+)$/gm)).toEqual(alerts)
  expect(names(rules, /runbook: docs\/runbook\.md#(\w+)/g)).toEqual(
    alerts.map((name) => name?.toLowerCase()),
  )
  for (const part of runbook.split(/^## /m).filter((part) => part.startsWith('Petstore'))) {
    expect(part).toMatch(/\*\*Means\*\* .+ \*\*Look\*\* .+ \*\*Do\*\* /)
  }
})

test('Prometheus reads the metrics often enough for PetstoreNotReady', () => {
  const seconds = names(read('deploy/prometheus.yml'), /(?:scrape|evaluation)_interval: (\d+)s/g)
  expect(seconds).toHaveLength(2)
  expect(Math.max(...seconds.map(Number))).toBeLessThanOrEqual(30)
})

test('each panel has the unit of its metric, legends of labels that it has, and the chosen source', () => {
  const units: [RegExp, string][] = [
    [/_bytes/, 'bytes'],
    [/_seconds(_bucket)?\{/, 's'],
    [/rate\(petstore_requests/, 'reqps'],
    [/rate\(petstore/, 'ops'],
  ]
  for (const { title, fieldConfig, targets } of dashboard.panels) {
    for (const { expr, legendFormat } of targets) {
      const unit = units.find(([pattern]) => pattern.test(expr))?.[1] ?? 'short'
      expect(fieldConfig.defaults.unit, title).toBe(unit)
      const labels = (/ by \((.+?)\)/.exec(expr)?.[1] ?? 'instance').split(', ')
      const shown = names(legendFormat, /\{\{(\w+)\}\}/g)
      expect(shown, title).toEqual(labels.filter((label) => label !== 'le'))
    }
  }
  const sources = names(read('deploy/grafana.json'), /"uid": "\$\{(\w+)\}"/g)
  expect(sources).toHaveLength(dashboard.panels.length + expressions.length + 3)
  expect(new Set(sources)).toEqual(new Set(['source']))
  const [source, ...filters] = dashboard.templating.list
  expect(source).toMatchObject({ name: 'source', type: 'datasource' })
  for (const expression of expressions) {
    expect(new Set(names(expression, /\b(\w+)=~"\$\w+"/g)), expression).toEqual(
      new Set(filters.map(({ name }) => name)),
    )
  }
})

test('variables and messages in the runbook exist in the service', () => {
  // The configuration names variables by its fields; .env.example has their own names.
  const files = ['.env.example', ...globSync(['src/**/*.ts', 'db/**/*.ts'], { cwd: root })]
  const source = files.map(read).join()
  const quoted = names(runbook, /`([A-Z][A-Z_]{3,}|[A-Z][a-z]+ [^`]+)`/g)
  expect(quoted.length).toBeGreaterThan(5)
  for (const text of quoted) {
    if (text !== 'ECONNREFUSED') expect(source).toContain(text)
  }
})

test.runIf(spawnSync('jq', ['--version']).status === 0)(
  'the jq command of the runbook selects errors, also in a log with other lines',
  () => {
    const log = [
      '{"level":"info"}',
      'Petstore is running.',
      '',
      '{"level":"error","msg":"boom"}',
      '{"le',
      '7',
    ]
    const [[, options, filter] = []] = runbook.matchAll(/`jq (-\w+) '([^']+)'/g)
    const { stdout } = spawnSync('jq', [`${options}`, `${filter}`], {
      input: log.join('\n'),
      encoding: 'utf8',
    })
    expect(stdout).toBe('{"level":"error","msg":"boom"}\n')
  },
)

test('HAProxy waits for the 503 that /readyz returns after a second, as PetstoreNotReady needs', () => {
  const instances = read('deploy/haproxy.cfg').split(/^listen /m)[1]
  expect(instances).toMatch(/^petstore\n/)
  expect(Number(/^ +timeout check (\d+)ms$/m.exec(`${instances}`)?.[1])).toBeGreaterThan(1_200)
})

describe('against a running service', () => {
  let server: ServerProgram
  let metrics: string
  beforeAll(async () => {
    const port = await freePort()
    server = await runServer({ METRICS_PORT: String(port) })
    const key = String(server.stdout.match(/petstore_[\w-]{43}/)?.[0])
    for (const path of ['/v1/pets', '/v1/pets/1', '/trpc/listPets']) {
      await fetch(server.origin + path, { headers: { authorization: `Bearer ${key}` } })
    }
    await fetch(`${server.origin}/v1/pets`)
    metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  })
  afterAll(async () => {
    await server.end()
  })

  test('every metric and label of rules and dashboard exists', () => {
    const known = new Set(names(metrics, /^(\w+)(?:\{| )/gm))
    const labels = new Set(['job', 'environment', 'instance', ...names(metrics, /[{,](\w+)="/g)])
    for (const text of [rules, ...expressions]) {
      for (const name of names(text, /\b((?:petstore|nodejs|process)_\w+)/g)) {
        expect(known, name).toContain(name)
      }
      for (const name of names(text, /[{,] ?(\w+)[!=]=?~?"/g)) expect(labels, name).toContain(name)
    }
  })

  const promtool = (args: string[], input = '') => {
    const { status, stdout, stderr } = spawnSync('promtool', args, { input, encoding: 'utf8' })
    return { status, output: stdout + stderr }
  }
  const isInstalled = spawnSync('promtool', ['--version']).status === 0

  test.runIf(isInstalled)(
    'promtool accepts rules, expressions and configuration, and each alert passes its tests',
    async () => {
      const folder = mkdtempSync(path.join(tmpdir(), 'petstore-rules-'))
      const write = (name: string, text: string) => {
        const file = path.join(folder, name)
        writeFileSync(file, text)
        return file
      }
      try {
        const alerts = path.join(root, 'deploy/alerts.yml')
        // The expressions of the dashboard as rules, with an interval instead of Grafana's variable, and
        // with the words of their legends.
        const records = dashboard.panels.flatMap(({ title, targets }) =>
          targets.map(({ expr, legendFormat }) => {
            const legend = legendFormat.replaceAll(/\{\{\w+\}\}/g, '').trim()
            const record = {
              record: 'panel',
              expr: expr.replace('$__rate_interval', '5m').replaceAll(/"\$\w+"/g, '".*"'),
              labels: { panel: title, legend },
            }
            return `      - ${JSON.stringify(record)}`
          }),
        )
        const panels = ['groups:', '  - name: panels', '    rules:', ...records].join('\n')
        const panelRules = write('panels.yml', panels)
        const cases = read('test/deploy/alerts.test.yml')
          .replace('- ALERTS\n', `- ${alerts}\n`)
          .replace('- PANELS\n', `- ${panelRules}\n`)
        for (const args of [
          ['check', 'rules', alerts, panelRules],
          ['check', 'config', path.join(root, 'deploy/prometheus.yml')],
          ['test', 'rules', write('cases.yml', cases)],
        ]) {
          const { status, output } = promtool(args)
          expect(status, output).toBe(0)
        }
        expect(promtool(['check', 'metrics'], metrics)).toEqual({ status: 0, output: '' })
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    },
  )
})
