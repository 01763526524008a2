import { configDefaults, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// The stories of those who consume the service, and what has a configuration of its own.
const apart = ['test/{consumers,third-party,faults,cluster}/**', ...configDefaults.exclude]

// Units; what a connection is worth before any database is asked, what answers look like, and a log
// that nobody reads: one engine will do.
const oneEngineWillDo = [
  'test/**/*.unit.test.ts',
  'test/http/{addresses,connections,docs,last-answers,preflight,refusals}.test.ts',
  'test/http/{unread-answers,unread-bodies,whole-answers}.test.ts',
  'test/rest/{addresses,document,invoices,kinds}.test.ts',
  'test/process/{document,loaded}.test.ts',
  'test/log.test.ts',
]

// All files of the differential test, which run in processes of their own, share one seed.
process.env.DIFFERENTIAL_SEED ||= String(Date.now() % 2 ** 31)

/** Begins with the projects whose files take long, so that none of them is waited for at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const projects = ['consumers', 'mysql', 'sqlite']
    const place = ({ project }: TestSpecification) => projects.indexOf(project.name)
    return sorted.toSorted((one, other) => place(one) - place(other))
  }
}

// The integration tests run once on each engine; all others once.
export default defineConfig({
  test: {
    // On a machine that is busy with other things a process alone takes seconds to start.
    testTimeout: 90_000,
    hookTimeout: 120_000,
    // On two cores, too: much of the time a test waits, for a process, a database or the clock.
    maxWorkers: 4,
    // Each file has a service and a database of its own; the modules that they share are loaded once.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    // A shared machine may stand still for seconds: what fails twice is broken.
    retry: process.env.CI ? 1 : 0,
    projects: [
      {
        extends: true,
        test: {
          name: 'consumers',
          include: ['test/{consumers,third-party}/**/*.test.ts'],
          globalSetup: ['test/consumers/setup.ts', 'test/third-party/setup.ts'],
          testTimeout: 240_000,
          provide: { mysqlUrl: '' },
        },
      },
      {
        extends: true,
        test: {
          name: 'mysql',
          include: ['test/**/*.test.ts'],
          exclude: [...apart, ...oneEngineWillDo],
          globalSetup: 'test/support/mysql-server.ts',
        },
      },
      {
        extends: true,
        test: {
          name: 'sqlite',
          include: ['test/**/*.test.ts'],
          exclude: apart,
          provide: { mysqlUrl: '' },
        },
      },
    ],
  },
})
