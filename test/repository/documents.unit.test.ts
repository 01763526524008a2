/** The Markdown documents: links, scripts, paths and commands are valid. */
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { parse } from 'devalue'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newFolder } from '../support/database.ts'
import { blocksOf } from '../support/documents.ts'
import { runServer, type ServerProgram } from '../support/process.ts'

const root = path.join(import.meta.dirname, '../..')
const read = (file: string) => readFileSync(path.join(root, file), 'utf8')
const documents = globSync(['*.md', '{bench,client,docs}/*.md', 'examples/*/*.md'], { cwd: root })

/** Returns the anchors of the headings of a document, as GitHub generates them. */
const anchorsOf = (text: string) =>
  [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  )

/** Returns the links of a document to files of this repository. */
const linksOf = (file: string) =>
  [...read(file).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g)].map(
    ([, target, anchor]) => ({
      target: target ? path.join(path.dirname(file), target) : file,
      anchor,
    }),
  )

test.each(documents)('%s: each link has an existing file and heading', (file) => {
  for (const { target, anchor } of linksOf(file)) {
    expect(existsSync(path.join(root, target)), target).toBe(true)
    if (anchor !== undefined) expect(anchorsOf(read(target)), target).toContain(anchor)
  }
})

test.each(documents)('%s: each named script exists', (file) => {
  const own = path.join(path.dirname(file), 'package.json')
  const { scripts } = JSON.parse(read(existsSync(path.join(root, own)) ? own : 'package.json'))
  const named = [...read(file).matchAll(/npm run (?:--silent )?([a-z:]+)/g)]
  const known = [...Object.keys(scripts ?? {})]
  for (const [, name] of named) expect(known).toContain(name)
})

test.each(documents)(
  '%s: no command has a comment, which zsh takes for words at its prompt',
  (file) => {
    const blocks = blocksOf(path.join(root, file)).filter(({ language }) => language === 'sh')
    expect(blocks.flatMap(({ code }) => code.match(/^.*(?<!\S)#.*$/gm) ?? [])).toEqual([])
  },
)

/** The files that CONTRIBUTING tells a developer to add. */
const ADDED = /visits(?:\/|\.)/

test.each(documents)('%s: each named path exists', (file) => {
  const paths = /`((?:src|db|client|docs|deploy|bench|examples|test)\/[\w@./*-]*)/g
  for (const [, name = ''] of read(file).matchAll(paths)) {
    const there = [name, path.join(path.dirname(file), name)]
    if (!ADDED.test(name)) expect(globSync(there, { cwd: root }), name).not.toEqual([])
  }
})

test('CONTRIBUTING: each folder and file of the tree exists', () => {
  const lines = read('CONTRIBUTING.md').matchAll(/^( *)([\w-]+(?:\/|\.ts))(?: {2,}.*)?$/gm)
  const parents: string[] = []
  let count = 0
  for (const [, indent = '', name = ''] of lines) {
    parents.splice(indent.length / 2, parents.length, name)
    expect(existsSync(path.join(root, ...parents)), parents.join('')).toBe(true)
    count++
  }
  expect(count).toBeGreaterThan(20)
})

test('README: the procedure is that of the source, and its answer that of the document', () => {
  const part = ['README.md', '## One procedure', '## What the start needs'] as const
  const blocks = blocksOf(path.join(root, part[0]), part[1], part[2])
  expect(blocks.map(({ language }) => language)).toEqual(['ts'])
  expect(read('src/petstore/pets/procedures.ts')).toContain(`\n${blocks[0]?.code}`)
  const { post } = JSON.parse(read('openapi.json')).paths['/pets']
  const [, answer = ''] = /^\| Answer \| `(.*?)`/m.exec(read('README.md')) ?? []
  const { example } = post.responses[201].content['application/json']
  expect(example).toMatchObject(JSON.parse(answer))
  expect(Object.keys(post.responses)).toEqual(expect.arrayContaining(['201', '400', '401', '429']))
})

/** The second is the shell of macOS at its prompt, without the settings of this machine. */
const shells = [
  ['sh', '-e'],
  ['zsh', '-f', '-i'],
].filter(([program = '']) => spawnSync(program, ['-c', ':']).status === 0)

describe('the commands', () => {
  const folder = newFolder(afterAll)
  let key: string
  let server: ServerProgram
  afterAll(async () => void (await server?.end('SIGTERM')))

  /** Runs lines in the root of the repository, on a database of these tests, by default by `sh`. */
  const run = async (lines: string, shell = ['sh', '-e']) => {
    const { PATH, HOME, NODE_COMPILE_CACHE } = process.env
    const DATABASE_URL = `sqlite:${folder}/petstore.db?create`
    const options = { cwd: root, env: { PATH, HOME, NODE_COMPILE_CACHE, DATABASE_URL } }
    const [program = '', ...words] = shell
    const running = promisify(execFile)(program, words, options)
    running.child.stdin?.end(lines)
    return await running
  }

  /** Returns the only block of a document that contains a text. */
  const block = (file: string, text: string) => {
    const blocks = blocksOf(path.join(root, file)).filter(({ code }) => code.includes(text))
    expect(blocks).toHaveLength(1)
    return blocks[0]?.code ?? ''
  }

  beforeAll(async () => {
    const { stdout } = await run('npm run --silent keys -- create first --forever')
    key = stdout.trim()
    server = await runServer({ DATABASE_URL: `sqlite:${folder}/petstore.db` })
  })

  test.each(shells)('README: the first requests succeed in %s', async (...shell) => {
    const lines = block('README.md', 'API_KEY=')
      .replaceAll('http://localhost:3000', server.origin)
      .replace('petstore_…', key)
    const { stdout } = await run(lines, shell)
    const [created, listed, end] = stdout.split('\n')
    const rex = JSON.parse(`${created}`)
    expect(rex).toMatchObject({ name: 'Rex', categoryId: 1, status: 'available' })
    expect(JSON.parse(`${listed}`)).toContainEqual(rex)
    expect(end).toBe('') // -w '\n' ends the last line
  })

  test('docs/clients.md: the calls of tRPC succeed', async () => {
    const lines = block('docs/clients.md', '/trpc/').replaceAll(
      'http://localhost:3000',
      server.origin,
    )
    const { stdout } = await run(`API_KEY=${key}\n${lines}`)
    const [created, listed] = stdout.split('\n').map((line) => line && JSON.parse(line))
    const rex = parse(created.result.data)
    expect(rex).toMatchObject({ name: 'Rex', categoryId: 3n })
    expect(parse(listed.result.data)).toContainEqual(rex)
  })

  test('README: the API key commands succeed', async () => {
    const { stdout } = await run(block('README.md', 'npm run keys'))
    const made = [...stdout.matchAll(/^(petstore_(?:read_)?)[\w-]{43}$/gm)]
    // Key 1 exists, as for a reader: the first of these is key 2, and the last one replaces it.
    expect(made.map(([, prefix]) => prefix)).toEqual(['petstore_', 'petstore_read_', 'petstore_'])
    expect(stdout).toContain('Web shop')
  })

  test('docs/operating.md: backup and restore succeed', async () => {
    const lines = block('docs/operating.md', 'npm run backup')
    const own = (text: string) =>
      text
        .replaceAll('data/backups', path.join(folder, 'backups'))
        .replaceAll('/tmp/drill', path.join(folder, 'drill'))
    await run(own(lines))
    expect(existsSync(path.join(folder, 'backups/monday.db'))).toBe(true)
    const drill = own(block('docs/operating.md', '/tmp/drill'))
    // A reader has no such variable in the environment, and would restore into the database of the service.
    const set = await run(`unset DATABASE_URL\n${drill.split('\n')[0]}\nprintenv DATABASE_URL`)
    expect(set.stdout).toContain('/drill/')
    const { stdout } = await run(drill)
    expect(stdout).toMatch(/^1 +first +petstore_/m)
  })
})
