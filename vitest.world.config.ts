import { defineConfig } from 'vitest/config'

// Programs of others, in the versions of the day: they need the registry of npm, and minutes.
export default defineConfig({
  test: {
    include: ['test/world/**/*.test.ts'],
    provide: { mysqlUrl: '' },
    globalSetup: ['test/journeys/setup.ts', 'test/world/setup.ts'],
    testTimeout: 600_000,
    hookTimeout: 600_000,
    fileParallelism: false,
  },
})
