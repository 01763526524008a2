import { configDefaults, defineConfig } from 'vitest/config'

const engineTests = {
  include: ['test/**/*.test.ts'],
  exclude: [
    ...configDefaults.exclude,
    'test/**/*.unit.test.ts',
    'test/consumers/**',
    'test/third-party/**',
    'test/faults/**',
    'test/cluster/**',
  ],
}

// All files of the differential test, which run in processes of their own, share one seed.
process.env.DIFFERENTIAL_SEED ||= String(Date.now() % 2 ** 31)

// The integration tests run once on each engine; the unit tests and the consumers' tests once.
export default defineConfig({
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Most of the time a test waits, for a process or a database.
    maxWorkers: 2,
    // A shared machine may stand still for seconds: what fails twice is broken.
    retry: process.env.CI ? 1 : 0,
    projects: [
      { extends: true, test: { name: 'unit', include: ['test/**/*.unit.test.ts'] } },
      { extends: true, test: { name: 'sqlite', ...engineTests, provide: { mysqlUrl: '' } } },
      {
        extends: true,
        test: {
          name: 'third-party',
          include: ['test/third-party/*.test.ts'],
          globalSetup: 'test/third-party/setup.ts',
          testTimeout: 240_000,
          provide: { mysqlUrl: '' },
        },
      },
      {
        extends: true,
        test: {
          name: 'consumers',
          include: ['test/consumers/**/*.test.ts'],
          globalSetup: 'test/consumers/setup.ts',
          provide: { mysqlUrl: '' },
        },
      },
      {
        extends: true,
        test: { name: 'mysql', ...engineTests, globalSetup: 'test/support/mysql-server.ts' },
      },
    ],
  },
})
