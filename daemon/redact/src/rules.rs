//! Secrets by the prefix that their vendor gives them. Our own list, from the vendors' documentation of their formats.
//!
//! A rule has a fixed prefix, a class and a minimum length, so that any text is searched in linear time. A rule that needs a
//! boundary on its right has one on its left too: then a replacement beside it uncovers no chain of further matches.

/// Boundaries of a shape: places between a letter, digit or underscore and another character.
pub(crate) enum Bounds {
    Free,
    Left,
    Both,
}

/// A secret that its text alone gives away.
pub(crate) struct Shape {
    pub(crate) id: &'static str,
    /// One of these is in every match. Case does not matter.
    pub(crate) keywords: &'static [&'static str],
    /// Case matters. If it has a group, that is the secret.
    pub(crate) pattern: &'static str,
    pub(crate) bounds: Bounds,
}

const fn free(id: &'static str, keywords: &'static [&'static str], pattern: &'static str) -> Shape {
    Shape { id, keywords, pattern, bounds: Bounds::Free }
}

const fn left(id: &'static str, keywords: &'static [&'static str], pattern: &'static str) -> Shape {
    Shape { id, keywords, pattern, bounds: Bounds::Left }
}

const fn both(id: &'static str, keywords: &'static [&'static str], pattern: &'static str) -> Shape {
    Shape { id, keywords, pattern, bounds: Bounds::Both }
}

#[rustfmt::skip]
pub(crate) const SHAPES: &[Shape] = &[
    // Source code, packages, builds.
    free("github-pat", &["ghp_"], "ghp_[A-Za-z0-9]{36,}"),
    free("github-oauth", &["gho_"], "gho_[A-Za-z0-9]{36,}"),
    free("github-app-token", &["ghu_", "ghs_"], "gh[us]_[A-Za-z0-9_.-]{35,}[A-Za-z0-9_-]"),
    free("github-refresh-token", &["ghr_"], "ghr_[A-Za-z0-9]{36,}"),
    free("github-fine-grained-pat", &["github_pat_"], "github_pat_[A-Za-z0-9_]{36,}"),
    left("gitlab-token", &["glpat-", "gldt-", "glrt-", "glrtr-", "glptt-", "glft-", "glsoat-", "glcbt-", "glagent-", "gloas-", "glffct-", "glimt-"],
        "gl(?:pat|dt|rt|rtr|ptt|ft|soat|cbt|agent|oas|ffct|imt)-[A-Za-z0-9_.=-]{20,}"),
    free("gitlab-runner-registration", &["gr1348941"], "GR1348941[A-Za-z0-9_-]{20,}"),
    free("atlassian-token", &["atatt3", "atctt3"], "AT[AC]TT3[A-Za-z0-9_=-]{40,}"),
    left("bitbucket-app-password", &["atbb"], "ATBB[A-Za-z0-9]{24,}"),
    free("npm-token", &["npm_"], "npm_[A-Za-z0-9]{36,}"),
    free("pypi-token", &["pypi-age"], "pypi-AgE[A-Za-z0-9_-]{40,}"),
    free("rubygems-key", &["rubygems_"], "rubygems_[0-9a-f]{48,}"),
    both("crates-io-token", &["cio"], "cio[A-Za-z0-9]{32}"),
    both("nuget-key", &["oy2"], "oy2[a-z0-9]{43}"),
    free("clojars-token", &["clojars_"], "CLOJARS_[a-z0-9]{60,}"),
    free("docker-token", &["dckr_"], "dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    left("artifactory-key", &["akcp"], "AKCp[A-Za-z0-9]{60,}"),
    free("sonar-token", &["sqa_", "sqp_", "squ_"], "sq[apu]_[0-9a-f]{40,}"),
    free("sourcegraph-token", &["sgp_"], "sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40,}"),
    free("buildkite-token", &["bkua_"], "bkua_[0-9a-f]{40,}"),
    free("pulumi-token", &["pul-"], "pul-[0-9a-f]{40,}"),
    free("terraform-token", &[".atlasv1."], r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}"),
    left("postman-key", &["pmak-"], "PMAK-[0-9a-f]{24}-[0-9a-f]{34,}"),
    // Clouds.
    both("aws-access-key-id", &["akia", "asia", "abia", "acca"], "(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
    left("aws-bedrock-key", &["absk"], "ABSK[A-Za-z0-9+/]{100,}={0,2}"),
    free("aws-bedrock-short-key", &["bedrock-api-key-"], "bedrock-api-key-[A-Za-z0-9+/=]{60,}"),
    left("gcp-api-key", &["aiza"], "AIza[A-Za-z0-9_-]{35,}"),
    left("gcp-oauth-token", &["ya29."], r"ya29\.[A-Za-z0-9_.-]{20,}"),
    free("google-client-secret", &["gocspx-"], "GOCSPX-[A-Za-z0-9_-]{28,}"),
    left("google-refresh-token", &["1//0"], "1//0[A-Za-z0-9_-]{40,}"),
    free("azure-client-secret", &["q~"], "[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,}"),
    free("azure-api-key", &["jqqj99"], "[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26,}"),
    free("azure-devops-pat", &["azdo"], "[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4,}"),
    free("digitalocean-token", &["doo_v1_", "dop_v1_", "dor_v1_"], "do[opr]_v1_[0-9a-f]{64,}"),
    free("heroku-key", &["hrku-"], "HRKU-[A-Za-z0-9_-]{36,}"),
    left("fly-token", &["fo1_", "fm1_", "fm2_", "fm1r_", "fm1a_", "fm2r_", "fm2a_"], "(?:fo1_[A-Za-z0-9_-]{43,}|fm[12][ar]?_[A-Za-z0-9+/=_,-]{100,})"),
    free("netlify-token", &["nfp_"], "nfp_[A-Za-z0-9_-]{36,}"),
    free("vercel-blob-token", &["vercel_blob_rw_"], "vercel_blob_rw_[A-Za-z0-9_]{30,}"),
    left("cloudflare-origin-key", &["v1.0-"], r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146,}"),
    free("supabase-key", &["sb_secret_", "sbp_"], "(?:sb_secret_[A-Za-z0-9_-]{20,}|sbp_[0-9a-f]{40,})"),
    free("planetscale-token", &["pscale_"], "pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{30,}"),
    left("databricks-token", &["dapi"], "dapi[0-9a-f]{32,}(?:-[0-9])?"),
    free("tailscale-key", &["tskey-"], "tskey-[a-z]{2,16}-[A-Za-z0-9-]{16,}"),
    // Stores of secrets.
    left("vault-token", &["hvs.", "hvb.", "hvr."], r"hv[sbr]\.[A-Za-z0-9_-]{24,}"),
    left("doppler-token", &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."], r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,}"),
    left("1password-service-token", &["ops_eyj"], "ops_eyJ[A-Za-z0-9+/=_-]{40,}"),
    free("age-secret-key", &["age-secret-key-1"], "AGE-SECRET-KEY-1[A-Z0-9]{58,}"),
    // Models.
    free("anthropic-key", &["sk-ant-"], "sk-ant-[A-Za-z0-9_-]{20,}"),
    left("openai-key", &["sk-proj-", "sk-svcacct-", "sk-admin-", "sk-none-", "t3blbkfj"],
        "sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9_-]{20,74}T3BlbkFJ[A-Za-z0-9_-]{20,})"),
    free("openrouter-key", &["sk-or-"], "sk-or-(?:v[0-9]-)?[A-Za-z0-9]{32,}"),
    left("sk-api-key", &["sk-"], "sk-[A-Za-z0-9]{32,}"),
    left("huggingface-token", &["hf_", "api_org_"], "(?:hf_|api_org_)[A-Za-z0-9]{30,}"),
    left("groq-key", &["gsk_"], "gsk_[A-Za-z0-9]{40,}"),
    left("xai-key", &["xai-"], "xai-[A-Za-z0-9]{60,}"),
    free("perplexity-key", &["pplx-"], "pplx-[A-Za-z0-9]{40,}"),
    left("replicate-token", &["r8_"], "r8_[A-Za-z0-9]{37,}"),
    free("nvidia-key", &["nvapi-"], "nvapi-[A-Za-z0-9_-]{60,}"),
    left("cerebras-key", &["csk-"], "csk-[a-z0-9]{40,}"),
    free("pinecone-key", &["pcsk_"], "pcsk_[A-Za-z0-9_]{40,}"),
    free("langsmith-key", &["lsv2_"], "lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10,}"),
    free("tavily-key", &["tvly-"], "tvly-(?:dev-|prod-)?[A-Za-z0-9-]{20,}"),
    both("firecrawl-key", &["fc-"], "fc-[0-9a-f]{32}"),
    free("jina-key", &["jina_"], "jina_[A-Za-z0-9_-]{40,}"),
    // Messages, payments, monitoring, documents.
    free("slack-token", &["xox"], r"xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}"),
    free("slack-app-token", &["xapp-"], "xapp-[0-9]-[A-Z0-9]+-[0-9]+-[0-9a-f]{16,}"),
    free("slack-webhook", &["hooks.slack.com"], r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{20,})"),
    free("discord-webhook", &["/api/webhooks/"], r"discord(?:app)?\.com/api/webhooks/[0-9]{10,}/([A-Za-z0-9_-]{40,})"),
    left("telegram-bot-token", &[":aa"], "[0-9]{8,10}:AA[A-Za-z0-9_-]{33,}"),
    left("stripe-key", &["sk_live_", "sk_test_", "rk_live_", "rk_test_"], "[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    left("webhook-secret", &["whsec_"], "whsec_[A-Za-z0-9+/]{24,}={0,2}"),
    both("twilio-key", &["sk"], "SK[0-9a-f]{32}"),
    left("sendgrid-key", &["sg."], r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,}"),
    both("mailgun-key", &["key-"], "key-[0-9a-f]{32}"),
    both("mailchimp-key", &["-us"], "[0-9a-f]{32}-us[0-9]{1,2}"),
    free("shopify-token", &["shpat_", "shpca_", "shppa_", "shpss_", "shpua_"], "shp(?:at|ca|pa|ss|ua)_[0-9a-fA-F]{32,}"),
    left("square-token", &["sq0"], "sq0[a-z]{3}-[A-Za-z0-9_-]{22,}"),
    left("easypost-key", &["ezak", "eztk"], "EZ[AT]K[A-Za-z0-9]{54,}"),
    left("grafana-token", &["glc_", "glsa_"], "gl(?:c|sa)_[A-Za-z0-9+/=_]{32,}"),
    left("new-relic-key", &["nrak-", "nrjs-", "nrii-"], "NR(?:AK|JS|II)-[A-Za-z0-9_-]{19,}"),
    free("sentry-token", &["sntrys_", "sntryu_"], "sntry[su]_[A-Za-z0-9+/=_-]{40,}"),
    left("dynatrace-token", &["dt0"], r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64,}"),
    free("linear-key", &["lin_api_", "lin_oauth_"], "lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    left("notion-token", &["ntn_", "secret_"], "(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43,})"),
    left("figma-token", &["figd_", "figo_", "figu_", "figr_"], "fig[dour]_[A-Za-z0-9_-]{36,}"),
    left("contentful-token", &["cfpat-"], "CFPAT-[A-Za-z0-9_-]{40,}"),
    left("mapbox-secret", &["sk.eyj"], r"sk\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}"),
    // Formats of no vendor.
    free("jwt", &["eyj"], r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    free("private-key-base64", &["ls0tls1crudjti"], "LS0tLS1CRUdJTi(?:BSU0EgUF|BQUklWQV|BFQyBQUk|BPUEVOU1|BFTkNSWV|BEU0EgUF)[A-Za-z0-9+/=_-]{60,}"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_unique_and_plain() {
        let ids: BTreeSet<&str> = SHAPES.iter().map(|shape| shape.id).collect();
        assert_eq!(ids.len(), SHAPES.len());
        let is_plain = |id: &str| id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        assert!(ids.into_iter().all(is_plain));
    }

    #[test]
    fn every_pattern_compiles() {
        for shape in SHAPES {
            assert!(crate::shapes::compile(shape.pattern).is_ok(), "{}", shape.id);
        }
    }
}
