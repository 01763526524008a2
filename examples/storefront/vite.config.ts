import react from '@vitejs/plugin-react'
import { defineConfig, loadEnv } from 'vite'

export default defineConfig(({ mode }) => {
  // The page asks its own origin, which hands on to the service: so any free port will do.
  const { PETSTORE_ORIGIN = 'http://localhost:3000' } = loadEnv(mode, '.', 'PETSTORE_')
  const proxy = { '/trpc': PETSTORE_ORIGIN }
  return { plugins: [react()], server: { proxy }, preview: { proxy } }
})
