/** Alerts, dashboard and runbook use existing metrics, and refer to each other. */
import { spawnSync } from 'node:child_process'
import { globSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { newFolder } from '../support/database.ts'
import { readRoot as read } from '../support/image.ts'
import { newMetrics } from '../support/metrics.ts'
import { startService } from '../support/service.ts'

const root = path.join(import.meta.dirname, '../..')
const rules = read('deploy/alerts.yml')
const runbook = read('docs/runbook.md')

interface Dashboard {
  panels: {
    title: string
    targets: { expr: string; legendFormat: string }[]
  }[]
}
const dashboard: Dashboard = JSON.parse(read('deploy/grafana.json'))
const expressions = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))

const names = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, name]) => name)

test('each alert links to its section of the runbook, and each section has an alert', () => {
  const alerts = names(rules, /- alert: (\w+)/g)
  expect(alerts.length).toBeGreaterThan(5)
  expect(names(runbook, /^## (Petstore\w+)$/gm)).toEqual(alerts)
  // The name by which others make a link of it, and one base, which the operator replaces.
  const urls = names(rules, /^ {10}runbook_url: (.+)$/gm)
  const [, base] = /replace (https:\S+)/.exec(rules) ?? []
  expect(urls).toEqual(alerts.map((name) => `${base}/runbook.md#${name?.toLowerCase()}`))
  for (const part of runbook.split(/^## /m).filter((part) => part.startsWith('Petstore'))) {
    expect(part).toMatch(/\*\*Means\*\* .+ \*\*Look\*\* .+ \*\*Do\*\* /)
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

describe('against a running service', () => {
  let metrics: string
  beforeAll(async () => {
    const { variables, text } = await newMetrics()
    const service = await startService(variables)
    for (const path of ['/v1/pets', '/v1/pets/1', '/trpc/listPets']) await service.fetch(path)
    metrics = await text()
    await service.stop()
  })

  test('every metric and label of rules and dashboard exists', () => {
    const known = new Set(names(metrics, /^(\w+)(?:\{| )/gm))
    // The last four are of the metrics of exporters.
    const given = ['job', 'environment', 'instance', 'name', 'state', 'cronjob', 'deployment']
    const labels = new Set([...given, ...names(metrics, /[{,](\w+)="/g)])
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
      const folder = newFolder()
      const write = (name: string, text: string) => {
        const file = path.join(folder, name)
        writeFileSync(file, text)
        return file
      }
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
    },
  )
})
