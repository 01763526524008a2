import { configDefaults, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import './test/support/compile-cache.ts'

// The journeys of consumers have a project of their own; faults, clusters and the world have configurations.
const apart = ['test/{journeys,faults,cluster,world}/**', ...configDefaults.exclude]

// The files of the differential test run in several processes, and share one seed.
process.env.DIFFERENTIAL_SEED ||= String(Date.now() % 2 ** 31)

// A day that depends on the time zone of the machine must fail a test.
process.env.TZ = 'America/St_Johns'

/**
 * Starts the longest files first, so that none runs alone at the end. A journey uses the processor, and a long file of
 * MySQL waits: one of each in turn. SQLite comes last, because a worker serves one project.
 */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const { sqlite = [], ...others } = Object.groupBy(sorted, ({ project }) => project.name)
    const lists = Object.values(others).map((list) => list ?? [])
    const most = Math.max(0, ...lists.map(({ length }) => length))
    const inTurn = Array.from({ length: most }, (_, at) => lists.flatMap((list) => list[at] ?? []))
    return [...inTurn.flat(), ...sqlite]
  }
}

const ofAll = {
  // On two cores, too: much of the time a test waits, for a process, a database or the clock.
  maxWorkers: 4,
  // On a machine that is busy with other things a process alone takes seconds to start.
  testTimeout: 90_000,
}

// A file runs on both engines, unless its name says which it needs: `.mysql` or `.sqlite` needs that one,
// `.unit` needs no database, and `.once` has the same result on both.
export default defineConfig({
  test: {
    ...ofAll,
    hookTimeout: 120_000,
    // The default is a second, in which the line of another process may not have arrived.
    expect: { poll: { timeout: 30_000 } },
    // Each file has a service and a database of its own; the modules that they share are loaded once.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    projects: [
      // The example's own tests, before the client's stand-in.
      {
        extends: './examples/storefront/vite.config.ts',
        root: 'examples/storefront',
        // Where projects differ in the number of workers, whose default depends on the machine, Vitest runs no test.
        test: { ...ofAll, name: 'storefront' },
      },
      {
        extends: true,
        test: {
          name: 'journeys',
          include: ['test/journeys/**/*.test.ts'],
          globalSetup: 'test/journeys/setup.ts',
          testTimeout: 240_000,
          provide: { mysqlUrl: '' },
        },
      },
      {
        extends: true,
        test: {
          name: 'mysql',
          include: ['test/**/*.test.ts'],
          exclude: [...apart, 'test/**/*.{unit,once,sqlite}.test.ts'],
          globalSetup: 'test/support/mysql-server.ts',
        },
      },
      {
        extends: true,
        test: {
          name: 'sqlite',
          include: ['test/**/*.test.ts'],
          exclude: [...apart, 'test/**/*.mysql.test.ts'],
          provide: { mysqlUrl: '' },
        },
      },
    ],
  },
})
