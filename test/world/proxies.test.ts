/** Proxies of Debian before the service: kept connections, creations, errors, and health that is never kept. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, vi } from 'vitest'
import { freePort } from '../support/mysql.ts'
import { keyedFetch } from '../support/rest.ts'
import { startService } from '../support/service.ts'
import { env, trial, versionPrinted } from './trial.ts'

interface Proxy {
  versionFlag: string
  config(port: number, service: number, folder: string): string
  args(port: number, config: string, folder: string): string[]
}

const proxies: Record<string, Proxy> = {
  nginx: {
    versionFlag: '-v',
    config: (port, service, folder) => `
      daemon off; pid ${folder}/pid; error_log stderr; events {}
      http {
        access_log off;
        client_body_temp_path ${folder}; proxy_temp_path ${folder}; fastcgi_temp_path ${folder};
        uwsgi_temp_path ${folder}; scgi_temp_path ${folder};
        upstream petstore { server 127.0.0.1:${service}; keepalive 8; }
        server {
          listen 127.0.0.1:${port};
          location / {
            proxy_pass http://petstore; proxy_http_version 1.1; proxy_set_header Connection "";
          }
        }
      }`,
    args: (_port, config) => ['-e', 'stderr', '-c', config],
  },
  caddy: {
    versionFlag: 'version',
    config: (port, service) => `{
        admin off
        auto_https off
      }
      http://127.0.0.1:${port} {
        reverse_proxy 127.0.0.1:${service}
      }`,
    args: (_port, config) => ['run', '--adapter', 'caddyfile', '--config', config],
  },
  apache2: {
    versionFlag: '-v',
    config: (port, service, folder) => `
      ServerRoot /usr/lib/apache2
      ServerName localhost
      PidFile ${folder}/pid
      ErrorLog /dev/stderr
      Listen 127.0.0.1:${port}
      User www-data
      Group www-data
      LoadModule mpm_event_module modules/mod_mpm_event.so
      LoadModule authz_core_module modules/mod_authz_core.so
      LoadModule proxy_module modules/mod_proxy.so
      LoadModule proxy_http_module modules/mod_proxy_http.so
      ProxyPass / http://127.0.0.1:${service}/`,
    args: (_port, config) => ['-D', 'FOREGROUND', '-f', config],
  },
  varnishd: {
    versionFlag: '-V',
    config: (_port, service) =>
      `vcl 4.1;\nbackend default { .host = "127.0.0.1"; .port = "${service}"; }`,
    args: (port, config, folder) => [
      ...['-F', '-a', `127.0.0.1:${port}`, '-f', config],
      ...['-n', `${folder}/varnish`, '-s', 'malloc,16m'],
    ],
  },
}

/** Starts a proxy, and returns its origin when it answers. */
async function start(program: string, { config, args }: Proxy, service: number): Promise<string> {
  const folder = mkdtempSync(path.join(tmpdir(), 'petstore-proxy-'))
  chmodSync(folder, 0o755) // as root, some run their work as another user
  const [port, file] = [await freePort(), path.join(folder, 'config')]
  writeFileSync(file, config(port, service, folder))
  const child: ChildProcess = spawn(program, args(port, file, folder), {
    env: { ...env, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder },
    stdio: 'ignore',
  })
  const ended = once(child, 'close')
  onTestFinished(async () => {
    child.kill()
    await ended
    rmSync(folder, { recursive: true, force: true })
  })
  const origin = `http://127.0.0.1:${port}`
  await vi.waitFor(async () => expect((await fetch(`${origin}/readyz`)).status).toBe(200), 30_000)
  return origin
}

for (const [program, proxy] of Object.entries(proxies)) {
  trial(program, async () => {
    const version = versionPrinted(program, proxy.versionFlag)
    const service = await startService({ TRUST_PROXY: '1' })
    const origin = await start(program, proxy, Number(new URL(service.origin).port))
    const call = keyedFetch(origin, service.key)
    const headers = { 'content-type': 'application/json', 'idempotency-key': '"one"' }
    const creation = { method: 'POST', headers, body: '{"name":"Rex","categoryId":1}' }
    const answers = [await call('/v1/pets', creation), await call('/v1/pets', creation)]
    expect(answers.map(({ status }) => status)).toEqual([201, 201])
    expect(await (await call('/v1/pets')).json()).toHaveLength(1)
    expect((await call('/v1/pets/x')).status).toBe(400)
    const reads = Array.from({ length: 200 }, () => call('/v1/pets?limit=1'))
    expect(new Set((await Promise.all(reads)).map(({ status }) => status))).toEqual(new Set([200]))
    expect((await fetch(`${origin}/readyz`)).headers.get('cache-control')).toBe('no-store')
    await service.stop()
    // What it kept of the health before would be 200.
    expect((await fetch(`${origin}/readyz`)).status).toBeGreaterThan(500)
    return { version, result: 'calls, repetition, 200 at once; health is not kept' }
  })
}
