FROM docker.io/library/node:26-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
COPY docs-page/package.json docs-page/
# TypeScript is a peer of @trpc/server for its types only; trpc-to-openapi names a bundler's binary. Types, maps and
# tests of packages are for their developers.
RUN npm ci --omit=dev && cd node_modules && rm -rf typescript @typescript @rollup @types && \
  find . \( -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.map' \) -delete && \
  find . -type d \( -name test -o -name tests -o -name __tests__ \) -prune -exec rm -r {} +

FROM docker.io/library/node:26-slim
# The kernel drops a signal that process 1 does not handle yet, such as SIGTERM in the first moments of a start.
RUN apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin
ENTRYPOINT ["tini", "-s", "--", "docker-entrypoint.sh"]
LABEL org.opencontainers.image.title="Petstore" \
  org.opencontainers.image.description="A catalogue of animals for a store" \
  org.opencontainers.image.licenses="MIT"
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json openapi.json LICENSE ./
COPY bin bin
COPY docs-page docs-page
COPY db db
COPY src src
# The cache of compiled code, for the other commands, too.
ENV NODE_COMPILE_CACHE=/app/node_modules/.cache/node
# The folder data contains the embedded database, which is the default of DATABASE_URL.
# Some platforms choose the user, in group 0 (OpenShift), so that group has the rights of the owner.
RUN mkdir -p data node_modules/.cache/node && chown 1000:0 data node_modules/.cache/node && chmod g=u data node_modules/.cache/node
VOLUME /app/data
# The user node, as a number: Kubernetes cannot tell of a name that it is not root (runAsNonRoot).
USER 1000
# Compiles the code for this user by the command of CMD: Node has a cache for each user and set of V8's options.
RUN set -e; export DATABASE_URL='sqlite:/tmp/petstore/petstore.db?create' PORT=0; \
  bin/petstore >/tmp/text & \
  until grep -q 'is running' /tmp/text; do kill -0 $!; sleep 0.1; done; kill $!; wait $!; \
  node src/cli/keys.ts list; node src/cli/health.ts || true; rm -r /tmp/petstore /tmp/text
EXPOSE 3000
# Checks the process alone: another container would not reach an unavailable database either.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["env", "-u", "NODE_OPTIONS", "node", "src/cli/health.ts"]
CMD ["bin/petstore"]
