import { defineConfig } from 'vitest/config'

// The tests of a file share three database nodes, one after another; what they print is the figures.
export default defineConfig({
  test: {
    include: ['test/cluster/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    fileParallelism: false,
    disableConsoleIntercept: true,
  },
})
