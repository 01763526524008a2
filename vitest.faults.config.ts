import { defineConfig } from 'vitest/config'

// What really breaks something takes longer than the other tests, and wants the machine for itself.
export default defineConfig({
  test: {
    include: ['test/faults/**/*.test.ts'],
    provide: { mysqlUrl: '' },
    testTimeout: 120_000,
    hookTimeout: 120_000,
    fileParallelism: false,
  },
})
