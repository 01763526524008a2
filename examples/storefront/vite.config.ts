import react from '@vitejs/plugin-react'
import { loadEnv } from 'vite'
import { defineConfig } from 'vitest/config'

export default defineConfig(({ mode }) => {
  // The page asks its own origin, which hands on to the service: so any free port will do.
  const { PORT = '3000' } = process.env // that of the service
  const { PETSTORE_ORIGIN = `http://localhost:${PORT}` } = loadEnv(mode, '.', 'PETSTORE_')
  const proxy = { '/trpc': PETSTORE_ORIGIN }
  return {
    base: './', // the built page may be served below a path
    plugins: [react()],
    server: { proxy },
    preview: { proxy },
    build: {
      modulePreload: { polyfill: false }, // there is one script
      rolldownOptions: {
        treeshake: {
          propertyReadSideEffects: false,
          // They do nothing when they are imported, but not all of them say so.
          moduleSideEffects: [{ test: /\/@trpc\//, sideEffects: false }],
        },
      },
    },
    test: {
      environment: 'happy-dom',
      silent: 'passed-only', // happy-dom writes each refused request
      // No key and no URL of a file `.env` counts.
      env: { VITE_PETSTORE_URL: '/trpc', VITE_PETSTORE_KEY: 'petstore_read_shop' },
    },
  }
})
