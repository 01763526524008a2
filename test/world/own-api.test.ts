/** A clone of this repository, as it was committed, in which the lines of the documents make an API of one's own. */
import { execFileSync } from 'node:child_process'
import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { run } from '../support/client-package.ts'
import { blocksOf } from '../support/documents.ts'
import { trial } from './trial.ts'

const repository = path.resolve(import.meta.dirname, '../..')

/** Clones this repository, with the packages that are installed here. */
function newClone() {
  const folder = mkdtempSync(path.join(tmpdir(), 'petstore-clone-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  execFileSync('git', ['clone', '--quiet', repository, folder])
  const modules = path.join(folder, 'node_modules')
  cpSync(path.join(repository, 'node_modules'), modules, {
    recursive: true,
    verbatimSymlinks: true,
  })
  const at = (file: string) => path.join(folder, file)
  return {
    read: (file: string) => readFileSync(at(file), 'utf8'),
    write: (file: string, text: string) => writeFileSync(at(file), text),
    append: (file: string, text: string) => appendFileSync(at(file), text),
    /** Runs lines by a shell. Throws their output if one fails. */
    async shell(lines: string): Promise<string> {
      const { code, output } = await run('sh', ['-ec', `exec 2>&1\n${lines}`], folder)
      expect(code, output.slice(-20_000)).toBe(0)
      return output
    },
  }
}
type Clone = ReturnType<typeof newClone>

const CONTRIBUTING = path.join(repository, 'CONTRIBUTING.md')

/** The code of the only block of CONTRIBUTING with these words. */
function block(words: string): string {
  const found = blocksOf(CONTRIBUTING).filter(({ code }) => code.includes(words))
  expect(found, words).toHaveLength(1)
  return `${found[0]?.code}`
}

/** Puts the resources of test/visits into the service of a clone, by the lines of CONTRIBUTING. */
async function addResources({ read, write, shell }: Clone): Promise<void> {
  await shell(block('for name in visits'))
  write('src/petstore/resources.ts', block('// src/petstore/resources.ts'))
  const lines = block('// client/src/memory/stores.ts')
  const stores = read('client/src/memory/stores.ts')
  const imports = [
    "import type { Helper } from '../../../src/petstore/helpers/schema.ts'",
    "import type { Tour } from '../../../src/petstore/tours/schema.ts'",
    "import { helpersInMemory, type LinkRow } from './helpers.ts'",
    "import { toursInMemory } from './tours.ts'",
    "import { ownersInMemory, type OwnerRow, type VisitRow, visitsInMemory } from './visits.ts'",
  ]
  const [head = '', body = ''] = stores.split(/(?<=\nexport function storesInMemory.*\n)/)
  const own = head.replace('\nimport ', `\n${imports.join('\n')}\nimport `)
  write('client/src/memory/stores.ts', `${own}${lines}}\n`)
  expect(body).toContain('petsInMemory')
  const changelog = read('CHANGELOG.md')
  const line = '- Visits, which belong to owners, helpers and tours.\n'
  write('CHANGELOG.md', changelog.replace(/(?<=^## \[Unreleased\]\n\n)/m, line))
}

/** Expects that each resource takes nine files at most, beside those that are made. */
async function expectFewFiles({ shell }: Clone): Promise<void> {
  const status = await shell('git status --porcelain --untracked-files=all')
  const places = status.split('\n').flatMap((line) => line.slice(3) || [])
  for (const name of ['visits', 'helpers', 'tours']) {
    const others = ['visits', 'helpers', 'tours'].filter((other) => other !== name)
    const own = places.filter((place) => !others.some((other) => place.includes(other)))
    expect(own.filter((place) => place !== 'openapi.json').length, own.join()).toBeLessThan(10)
  }
}

/** What a team has beside resources: what calls have, and its sign-in in place of API keys. */
const TEAM = {
  'src/petstore/team/context.ts': `import type { Authentication } from '../../procedure/authentication.ts'
    import { jwtVerify } from 'jose'
    const secret = new TextEncoder().encode('a secret of the tests, with 32 bytes or more')
    const ofToken = ({ payload: { sub = '' } }: { payload: { sub?: string } }) =>
      ({ name: sub, holder: sub, readOnly: false })
    export const createContext = () => ({ greet: (name: string) => ['Dear', name].join(' ') })
    export const authentication = {
      callerOf: ({ headers }) =>
        jwtVerify(headers.get('Authorization')?.slice(7) ?? '', secret).then(ofToken, () => undefined),
      besideApiKeys: false,
      message: 'Sign in first',
      challenge: 'Bearer realm="team"',
      scheme: { type: 'http', scheme: 'bearer', description: 'The token of a user.' },
    } satisfies Authentication`,
  'src/petstore/team/procedures.ts': `import { z } from 'zod'
    import { restMeta } from '../../procedure/meta.ts'
    import { proceduresWith } from '../../procedure/procedure.ts'
    import type { createContext } from './context.ts'
    const { procedure } = proceduresWith<object, ReturnType<typeof createContext>>()
    const Greeting = z.object({ text: z.string().meta({ description: 'The text.' }) }).meta({ id: 'Greeting' })
    const words = { summary: 'Get a greeting', description: 'Returns a greeting.' }
    const tag = { name: 'greetings', description: 'Greetings.' }
    const sample = 'petstore.getGreeting.query()'
    export const teamProcedures = {
      getGreeting: procedure
        .meta(restMeta({ method: 'GET', path: '/greeting', tag, ...words, sample, example: { text: 'Dear Ann' } }))
        .output(Greeting)
        .query(({ ctx }) => ({ text: ctx.greet(ctx.caller.name) })),
    }`,
  'test/petstore/team.test.ts': `import { expect, test } from 'vitest'
    import { serveBoth } from '../support/both.ts'
    const { client, standIn } = await serveBoth()
    test('a greeting', async () => {
      expect(await client.getGreeting.query()).toEqual({ text: 'Dear Ann' })
      expect(await standIn.getGreeting.query()).toEqual({ text: 'Dear stand-in' })
    })`,
}

/** Adds them to a clone, and runs what a team runs. */
async function addTeam({ read, write, shell }: Clone): Promise<void> {
  await shell(`mkdir -p src/petstore/team test/petstore
    version=$(npm pkg get devDependencies.jose | tr -d '"')
    npm pkg delete devDependencies.jose && npm pkg set "dependencies.jose=$version"`)
  for (const [file, text] of Object.entries(TEAM)) write(file, text)
  const [head = '', tail = ''] = read('src/petstore/resources.ts').split('\n  ...petProcedures,')
  const imports = "import { teamProcedures } from './team/procedures.ts'\n"
  const exports = "export { authentication, createContext } from './team/context.ts'\n"
  const resources = `${head}\n  ...petProcedures,\n  ...teamProcedures,${tail}${exports}`
  write('src/petstore/resources.ts', resources.replace('import { petStore', `${imports}$&`))
  const both = read('test/support/both.ts')
    .replace('resources: resourcesOfService', "$&, key: await tokenOf('Ann', 'editor')")
    .replace('import type { AppRouter', "import { tokenOf } from '../teams/tokens.ts'\n$&")
  write('test/support/both.ts', both)
  const testing = read('client/src/testing.ts')
  const greet = "createContext: () => ({ greet: (name: string) => ['Dear', name].join(' ') })"
  write('client/src/testing.ts', testing.replace('url, apiKeys })', `url, apiKeys, ${greet} })`))
  await shell(`npm run format && npm run openapi && npm run check
    npx vitest run --project sqlite test/petstore test/surface test/teams test/repository/layout.unit.test.ts`)
}

const OWN_API = path.join(repository, 'docs/own-api.md')

/** Runs the only block of docs/own-api.md with these words, in a clone. */
async function runOf(clone: Clone, words: string, lines = (code: string) => code): Promise<void> {
  const found = blocksOf(OWN_API).filter(({ code }) => code.includes(words))
  expect(found, words).toHaveLength(1)
  await clone.shell(lines(`${found[0]?.code}`))
}

trial("An API of one's own, by docs/own-api.md", async () => {
  const clone = newClone()
  const { shell, append } = clone
  await shell('git config user.name Reader && git config user.email reader@example.com')
  await shell('git switch --quiet --create own')
  await runOf(clone, "TITLE = '")
  await shell('git commit --quiet --all --message "A clinic"')
  await addResources(clone)
  await runOf(clone, 'npm run format')
  await expectFewFiles(clone)
  await shell('git add --all && git commit --quiet --message "Visits of a clinic"')
  // Those that CONTRIBUTING names run on MySQL alone: all run on SQLite.
  const tests = block('npm run check && npx vitest run test/petstore')
  const few = 'export DIFFERENTIAL_CASES=50\n'
  await shell(few + tests.replace('npm run check && npx vitest', 'npx vitest --project mysql'))
  await shell(`${few}npx vitest run --project sqlite`)

  // A later release, which changes what both have.
  await shell('git switch --quiet main')
  append(
    'src/errors/problem.ts',
    '\n/** @public Of a later release. */\nexport const LATER = true\n',
  )
  await shell(`sed -i 's/Adds an animal to the catalogue/Adds one animal to the catalogue/' src/petstore/pets/procedures.ts
    npm run openapi && git commit --quiet --all --message 'A later release'
    git switch --quiet own`)
  await runOf(clone, 'git merge', (code) =>
    code.replace('git fetch origin && git merge origin/main && npm ci', 'git merge main'),
  )
  await addTeam(clone)
  const result =
    'nine files for a resource; check and tests are green, also with a sign-in; a later commit merges'
  return { version: '', result }
})
